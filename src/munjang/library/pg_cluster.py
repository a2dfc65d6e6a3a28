"""A library spread over the nodes of a PostgreSQL cluster (Citus): what readers see, and how a change becomes visible.

Documents, passages, words and token codes are spread by document, so that all that belongs to a document lies on one node; settings, and
who writes, stay with the coordinator, to which everybody connects. Each node commits by itself, so there is no snapshot of the cluster:
a reader could see a change on one node and not yet on another. Therefore nothing that is stored is ever changed. A change writes new
documents with higher numbers, which nobody sees, waits until every node has confirmed them, and then says in one row of the coordinator
which numbers count (`Window`). A reader takes that row first, and all of its queries look only at those numbers.

1. Write new documents, in one transaction of all nodes (two-phase commit). Whoever fails here leaves nothing, or documents that no window
   ever holds: numbers after a failure begin beyond them.
2. Make sure that no node still has a prepared transaction of ours.
3. Publish: new window, generation, numbers of documents that are gone, settings. One local commit.
4. Delete what is gone and no reader needs any more. A reader holds a shared lock on the second of its generation for as long as it reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from munjang.errors import InputError, UsageError
from munjang.library.pg_connections import SNAPSHOT, Executes, run
from munjang.library.store import ServerLost

if TYPE_CHECKING:
    import psycopg

DISTRIBUTED = {"documents": "number", "passages": "document", "words": "document", "token_codes": "document"}
"""The tables that are spread, and the column by which."""

TABLES = (
    "CREATE TABLE documents (number bigint PRIMARY KEY, key bytea NOT NULL, id text NOT NULL, text text NOT NULL,"
    " metadata text NOT NULL, found jsonb NOT NULL GENERATED ALWAYS AS (metadata::jsonb) STORED, content_hash text NOT NULL,"
    " checksum bigint NOT NULL)",
    "CREATE INDEX documents_by_key ON documents (key)",
    'CREATE TABLE passages ("row" bigint NOT NULL, document bigint NOT NULL REFERENCES documents (number) ON DELETE CASCADE,'
    " start integer NOT NULL, stop integer NOT NULL, words text[] NOT NULL, length integer NOT NULL, vector vector NOT NULL,"
    ' checksum bigint NOT NULL, PRIMARY KEY (document, "row"))',
    "ALTER TABLE passages ALTER COLUMN vector SET STORAGE MAIN",
    'CREATE INDEX passages_by_row ON passages ("row")',
    'CREATE TABLE words (word text COLLATE "C" NOT NULL, "row" bigint NOT NULL, document bigint NOT NULL, count integer NOT NULL,'
    ' PRIMARY KEY (word, document, "row"), FOREIGN KEY (document, "row") REFERENCES passages (document, "row") ON DELETE CASCADE)',
    'CREATE INDEX words_of ON words (document, "row")',
    'CREATE TABLE token_codes ("row" bigint NOT NULL, document bigint NOT NULL, book bigint NOT NULL, codes bytea NOT NULL,'
    ' checksum bigint NOT NULL, PRIMARY KEY (document, "row", book),'
    ' FOREIGN KEY (document, "row") REFERENCES passages (document, "row") ON DELETE CASCADE)',
    "CREATE TABLE token_codebook (one integer PRIMARY KEY CHECK (one = 1), format text NOT NULL, fingerprint text NOT NULL,"
    " complete boolean NOT NULL, centre bytea NOT NULL, scale bytea NOT NULL, checksum bigint NOT NULL)",
    "CREATE TABLE gone (first bigint NOT NULL, last bigint NOT NULL, generation bigint NOT NULL)",
    "ALTER TABLE settings ADD COLUMN visible text NOT NULL DEFAULT '[]', ADD COLUMN pending boolean NOT NULL DEFAULT false,"
    " ADD COLUMN weights text",
)
"""In the place of those of one server (`pg_schema`): keys hold the column by which a table is spread, and words know their document."""

_READS = re.compile(rf"\b(FROM|JOIN)\s+({'|'.join(DISTRIBUTED)})\b")
_SECOND, _EPOCH = 1_000_000, 1_577_836_800
PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Lets the settings of a transaction that follow count on every node."""

Range: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """The documents that count in one generation: ranges of numbers, without those that are gone."""

    generation: int
    ranges: tuple[Range, ...]
    gone: tuple[int, ...] = ()

    def condition(self, column: str) -> str:
        """Return what a row's number must meet, in SQL."""
        inside = " OR ".join(f"{column} BETWEEN {int(first)} AND {int(last)}" for first, last in self.ranges) or "false"
        left = f" AND {column} <> ALL ('{{{','.join(str(int(number)) for number in self.gone)}}}'::bigint[])" if self.gone else ""
        return f"({inside}){left}"

    def restrict(self, sql: str) -> str:
        """Return a query that reads nothing but these documents.

        >>> Window(1, ((1, 9),)).restrict("SELECT count(*) FROM passages")
        'SELECT count(*) FROM (SELECT * FROM passages WHERE (document BETWEEN 1 AND 9)) AS passages'
        """

        def inside(match: re.Match[str]) -> str:
            word, table = match.groups()
            return f"{word} (SELECT * FROM {table} WHERE {self.condition(DISTRIBUTED[table])}) AS {table}"  # noqa: S608

        return _READS.sub(inside, sql)


@dataclass(frozen=True, eq=False)
class ClusterReader:
    """A connection whose queries see one window."""

    connection: psycopg.Connection[Any]
    window: Window

    def execute(self, query: bytes, values: Any = None) -> Any:
        """Execute a query over the documents that count."""
        return self.connection.execute(self.window.restrict(query.decode()).encode(), values)


def same_document(table: str, connection: Executes) -> str:
    """Return what a join of a table with passages needs beside the row, so that it stays inside a node; nothing on one server."""
    return f" AND {table}.document = passages.document" if isinstance(connection, ClusterReader) else ""


def make_tables(connection: psycopg.Connection[Any]) -> None:
    """Make the tables that are spread, inside the caller's transaction."""
    if run(connection, "SELECT to_regproc('create_distributed_table')").fetchone()[0] is None:
        fact = "the server is not the coordinator of a Citus cluster, which a distributed library needs"
        raise InputError(f"{fact}\n  ask its administrator for CREATE EXTENSION citus, or leave distributed out")
    for statement in TABLES:
        run(connection, statement)
    for table, column in DISTRIBUTED.items():
        beside = "default" if table == "documents" else "documents"
        run(connection, f"SELECT create_distributed_table('{table}', '{column}', colocate_with => '{beside}')")


def check_coordinator(connection: psycopg.Connection[Any], name: str) -> None:
    """Refuse a node that is not the coordinator: the writer's lock and the window are there."""
    if not run(connection, "SELECT citus_is_coordinator()").fetchone()[0]:
        raise UsageError(f"{name}: is a worker of the cluster\n  connect to the coordinator")


def is_cluster(connection: psycopg.Connection[Any]) -> bool:
    """Say whether a library is spread over a cluster."""
    return run(connection, "SELECT to_jsonb(settings) ->> 'visible' FROM settings").fetchone()[0] is not None


_STATE = "SELECT generation, visible, pending, ARRAY(SELECT first FROM gone WHERE first = last AND first >= 0) FROM settings"


def read_window(connection: psycopg.Connection[Any]) -> tuple[Window, bool]:
    """Return what counts now, and whether a change was begun and never published."""
    generation, visible, pending, gone = run(connection, _STATE).fetchone()
    return Window(generation, tuple((first, last) for first, last in json.loads(visible)), tuple(gone)), pending


@contextmanager
def begin_reading(connection: psycopg.Connection[Any], schema: str, outer: Executes | None) -> Iterator[Executes]:
    """Let a transaction read the last window, or that of an outer reader; nothing of it is deleted meanwhile."""
    if isinstance(outer, ClusterReader):
        window = outer.window
        name = run(outer.connection, "SELECT pg_export_snapshot()").fetchone()[0]
        run(connection, SNAPSHOT)
        run(connection, f"SET TRANSACTION SNAPSHOT '{name}'")
        _hold(connection, schema, window.generation)
    else:
        run(connection, "SELECT pg_advisory_lock_shared(hashtextextended(%s, 2))", (schema,))
        try:
            run(connection, SNAPSHOT)
            window = read_window(connection)[0]
            _hold(connection, schema, window.generation)
        finally:
            _leave_gate(connection, schema)
    yield ClusterReader(connection, window)


def _leave_gate(connection: psycopg.Connection[Any], schema: str) -> None:
    if connection.info.transaction_status.name in ("UNKNOWN", "INERROR"):  # lost, or of no use: the server gives the lock back with it
        connection.close()
    else:
        run(connection, "SELECT pg_advisory_unlock_shared(hashtextextended(%s, 2))", (schema,))


def _hold(connection: psycopg.Connection[Any], schema: str, generation: int) -> None:
    run(connection, "SELECT pg_advisory_xact_lock_shared(hashtext(%s), %s)", (schema, to_second(generation)))


def find_oldest_reader(connection: psycopg.Connection[Any], schema: str) -> int | None:
    """Return the second of the oldest generation that somebody reads, or a later one if nobody does; None where that takes too long."""
    import psycopg

    run(connection, "SET lock_timeout = 1000")
    try:  # nobody is between looking at the window and taking its lock while this one is held
        run(connection, "SELECT pg_advisory_lock(hashtextextended(%s, 2))", (schema,))
    except psycopg.errors.LockNotAvailable:
        return None
    finally:
        run(connection, "RESET lock_timeout")
    sql = """SELECT coalesce(min(objid::bigint), 2147483647) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
             AND classid::bigint = (hashtext(%s)::bigint & 4294967295)
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    oldest = run(connection, sql, (schema,)).fetchone()[0]
    run(connection, "SELECT pg_advisory_unlock(hashtextextended(%s, 2))", (schema,))
    return int(oldest)


def to_second(generation: int) -> int:
    """Return a generation's second as a lock's number, which has 31 bits."""
    return max(0, generation // _SECOND - _EPOCH)


def confirm_commit(connection: psycopg.Connection[Any], name: str) -> None:
    """Make sure that the last transaction of this connection is committed on every node; raise ServerLost otherwise."""
    import psycopg

    waiting = f"SELECT count(*) FROM pg_prepared_xacts WHERE gid ~ '^citus_[0-9]+_{connection.info.backend_pid}_'"  # noqa: S608
    sql = "SELECT count(*) FROM run_command_on_workers(%s) WHERE NOT success OR result <> '0'"
    if not run(connection, sql, (waiting,)).fetchone()[0]:
        return
    try:
        run(connection, "SELECT recover_prepared_transactions()")
    except psycopg.Error:  # only an administrator may; the coordinator does it by itself once a minute
        pass
    if connection.closed or run(connection, sql, (waiting,)).fetchone()[0]:
        raise ServerLost(f"{name}: a node of the cluster did not confirm the change, so nothing was changed\n  try again later")


def count_shards(connection: Executes) -> int:
    """Return how many pieces each table is in."""
    sql = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'passages'::regclass"
    return int(run(connection, sql).fetchone()[0])


def read_shards(connection: Executes) -> list[tuple[str, int, int]]:
    """Return each node's address, how many shards it has of each table together, and their bytes."""
    tables = ", ".join(f"'{table}'::regclass" for table in DISTRIBUTED)
    sql = f"""SELECT nodename || ':' || nodeport, count(*), sum(shard_size) FROM citus_shards WHERE table_name IN ({tables})
              GROUP BY 1 ORDER BY 1"""  # noqa: S608
    return [(str(node), int(shards), int(size)) for node, shards, size in run(connection, sql)]
