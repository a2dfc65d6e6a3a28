"""The store for what outgrows one file: PostgreSQL with pgvector, `postgresql://host/database#name`. See store.py for the promises.

One writer at a time holds an advisory lock of the server, which a lost connection gives back. The HNSW index is made when a put leaves
INDEXED_FROM passages or more; below that, reading all vectors is fast enough.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from munjang.errors import Busy, InputError, UsageError, shown
from munjang.library import pg_read, pg_write
from munjang.library.pg_connections import Address, Connections, run, translated
from munjang.library.pg_schema import add_later_columns, create, exists, make_index, read_settings, write_settings
from munjang.library.sql_store import SqlStore
from munjang.library.store import Change, Scored, Settings
from munjang.library.where import Condition
from munjang.types import Vectors

if TYPE_CHECKING:
    import psycopg

INDEXED_FROM = 5_000


class PgvectorStore(SqlStore["psycopg.Connection[Any]"]):
    """Documents, passages and vectors in PostgreSQL."""

    _connections: Connections

    def __init__(self, connections: Connections, uuid: str) -> None:
        super().__init__(connections.address.shown, uuid, connections, pg_read)

    @classmethod
    def open(cls, address: str, *, create_with: Settings | None = None) -> PgvectorStore:
        """Open a library; make it when it does not exist and settings are given."""
        place = Address.parsed(address)
        connections = Connections(place)
        connection = connections.connect()
        try:
            with translated(place.shown):
                if create_with is not None and not exists(connection, place.schema):
                    create(connection, place.schema, create_with)
                if not exists(connection, place.schema):
                    raise InputError(f"{place.shown}: there is no such library\n  make it with munjang add, or check the address")
                uuid = str(run(connection, "SELECT uuid FROM settings").fetchone()[0])
        finally:
            connection.close()
        return cls(connections, uuid)

    @contextmanager
    def writer(self, purpose: str, /) -> Iterator[None]:
        """Hold the right to write, or raise Busy with whoever holds it."""
        connection = self._connections.connect()
        try:
            with translated(self.name):
                key = f"munjang {self._connections.address.schema}"
                if not run(connection, "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (key,)).fetchone()[0]:
                    raise Busy(f"{self.name}: {_holder(connection)} is writing\n  try again when that is done; searching works meanwhile")
                with connection.transaction():
                    run(connection, "DELETE FROM writer")
                    since = datetime.now(UTC).isoformat(timespec="seconds")
                    run(connection, "INSERT INTO writer VALUES (%s, %s, %s)", (os.getpid(), since, json.dumps(purpose)))
            with self._writing_with(connection):
                yield
        finally:
            _release(connection)

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None) -> None:
        """Write all changes in one durable transaction."""
        if settings is not None:
            with translated(self.name):
                add_later_columns(self._held())
        with self._committed() as connection:
            if settings is not None:
                write_settings(connection, settings)
            dimension = (settings or read_settings(connection)).dimension
            writing = pg_write.Writing(connection, dimension=dimension, microseconds=_microseconds())
            writing.take(changes)
            if settings is not None:
                run(connection, "DELETE FROM documents WHERE number <= %s", (writing.before,))
            if run(connection, "SELECT count(*) FROM passages").fetchone()[0] >= INDEXED_FROM:
                make_index(connection, dimension)

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        with self._committed() as connection:
            return pg_write.delete_documents(connection, ids)

    def nearest(self, query_D: Vectors, k: int, /, *, where: Condition | None = None, exact: bool = False) -> list[Scored]:
        """Return the k rows with the highest cosine; not `exact` may use the HNSW index."""
        with self._connections.snapshot() as connection:
            dimension = read_settings(connection).dimension
            if query_D.shape != (dimension,):
                raise UsageError(f"query: found shape {query_D.shape}, expected {(dimension,)}")
            return pg_read.read_nearest(connection, query_D, k, dimension=dimension, where=where, exact=exact)

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        with self._connections.walk() as connection:
            return list(pg_read.findings(connection, dimension=read_settings(connection).dimension))

    def compact(self) -> None:
        """Let the server use the space of deleted documents again."""
        with translated(self.name):
            for table in ("documents", "passages", "words"):
                run(self._held(), f"VACUUM (ANALYZE) {table}")

    @contextmanager
    def _committed(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a transaction that counts as a new generation."""
        connection = self._held()
        with translated(self.name), connection.transaction():
            yield connection
            run(connection, "UPDATE settings SET generation = greatest(generation + 1, %s)", (_microseconds(),))


def _release(connection: psycopg.Connection[Any]) -> None:
    """Give the lock back before the connection goes: the server would do so, but a moment after the next writer asks."""
    try:
        if not connection.broken:
            connection.rollback()
            run(connection, "SELECT pg_advisory_unlock_all()")
    finally:
        connection.close()


def _holder(connection: psycopg.Connection[Any]) -> str:
    found = run(connection, "SELECT pid, purpose, since FROM writer").fetchone()
    return "another process" if found is None else f"process {found[0]} ({shown(json.loads(found[1]))}, since {shown(found[2])})"


def _microseconds() -> int:
    return time.time_ns() // 1_000
