"""The store for what outgrows one file: PostgreSQL with pgvector, `postgresql://host/database#name`. See store.py for the promises.

One writer at a time holds an advisory lock of the server, which a lost connection gives back. The HNSW index is made when a put leaves
INDEXED_FROM passages or more; below that, reading all vectors is fast enough.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from munjang.errors import Busy, InputError, UsageError, shown
from munjang.library import pg_read, pg_write
from munjang.library.pg_connections import Address, Connections, run, translated
from munjang.library.pg_schema import create, exists, make_index, read_settings, write_settings
from munjang.library.store import BLOCK, Change, Document, Entry, Place, Scored, Settings, VectorBlock
from munjang.library.where import Condition
from munjang.types import Ints, Vectors

if TYPE_CHECKING:
    import psycopg

INDEXED_FROM = 5_000


class PgvectorStore:
    """Documents, passages and vectors in PostgreSQL."""

    def __init__(self, connections: Connections, uuid: str) -> None:
        self._connections = connections
        self._uuid = uuid
        self._writing = threading.local()

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

    @property
    def name(self) -> str:
        """The address, without a password."""
        return self._connections.address.shown

    @property
    def uuid(self) -> str:
        """Different for every store ever made."""
        return self._uuid

    def settings(self) -> Settings:
        """Return what all vectors have in common."""
        with self._connections.reader() as connection:
            return read_settings(connection)

    def generation(self) -> int:
        """Return a number that grows with every commit."""
        with self._connections.reader() as connection:
            return int(run(connection, "SELECT generation FROM settings").fetchone()[0])

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
            self._writing.connection = connection
            yield
        finally:
            self._writing.connection = None
            _release(connection)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread inside the block see one commit."""
        with self._connections.snapshot():
            yield

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None) -> None:
        """Write all changes in one durable transaction."""
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

    def get(self, ids: Sequence[str], /) -> dict[str, Document]:
        """Return those of the documents that exist, by id."""
        with self._connections.reader() as connection:
            return pg_read.read_documents(connection, ids, self.name)

    def entries(self, *, block: int = BLOCK) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors."""
        with self._connections.walk() as connection:
            dimension = read_settings(connection).dimension
            yield from pg_read.read_entries(connection, dimension=dimension, block=block, name=self.name)

    def vectors(self, *, after: int = 0, block: int = BLOCK) -> Iterator[VectorBlock]:
        """Yield the vectors of all rows greater than `after`."""
        with self._connections.walk() as connection:
            dimension = read_settings(connection).dimension
            yield from pg_read.read_vectors(connection, after=after, dimension=dimension, block=block, name=self.name)

    def vectors_of(self, rows: Sequence[int] | Ints, /) -> VectorBlock:
        """Return the vectors of those of these rows that exist."""
        with self._connections.snapshot() as connection:
            return pg_read.read_vectors_of(connection, rows, dimension=read_settings(connection).dimension, name=self.name)

    def rows(self, where: Condition | None = None, /) -> Ints:
        """Return the rows of all documents that meet the condition."""
        with self._connections.reader() as connection:
            return pg_read.read_rows(connection, where)

    def rows_of(self, ids: Sequence[str], /) -> Ints:
        """Return the rows of these documents."""
        with self._connections.reader() as connection:
            return pg_read.read_rows_of(connection, ids)

    def places(self, rows: Sequence[int] | Ints, /) -> dict[int, Place]:
        """Return where those of these rows stand that exist."""
        with self._connections.reader() as connection:
            return pg_read.read_places(connection, rows)

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that fit these words best."""
        with self._connections.reader() as connection:
            return pg_read.read_lexical(connection, words, k, where)

    def nearest(self, query_D: Vectors, k: int, /, *, where: Condition | None = None, exact: bool = False) -> list[Scored]:
        """Return the k rows with the highest cosine; not `exact` may use the HNSW index."""
        with self._connections.snapshot() as connection:
            dimension = read_settings(connection).dimension
            if query_D.shape != (dimension,):
                raise UsageError(f"query: found shape {query_D.shape}, expected {(dimension,)}")
            return pg_read.read_nearest(connection, query_D, k, dimension=dimension, where=where, exact=exact)

    def count(self) -> tuple[int, int]:
        """Return the number of documents and of passages."""
        with self._connections.reader() as connection:
            documents, passages = run(connection, "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)").fetchone()
            return int(documents), int(passages)

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        with self._connections.walk() as connection:
            return list(pg_read.findings(connection, dimension=read_settings(connection).dimension))

    def compact(self) -> None:
        """Let the server use the space of deleted documents again."""
        with translated(self.name):
            for table in ("documents", "passages", "words"):
                run(self._held(), f"VACUUM (ANALYZE) {table}")

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    @contextmanager
    def _committed(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a transaction that counts as a new generation."""
        connection = self._held()
        with translated(self.name), connection.transaction():
            yield connection
            run(connection, "UPDATE settings SET generation = greatest(generation + 1, %s)", (_microseconds(),))

    def _held(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] | None = getattr(self._writing, "connection", None)
        if connection is None:
            raise UsageError(f"{self.name}: writing needs the writer's lock\n  write inside `with store.writer(…):`")
        return connection


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
