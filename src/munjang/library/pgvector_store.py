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

from munjang.errors import Busy, InputError, UsageError, quote
from munjang.library import pg_read, pg_tokens, pg_write
from munjang.library.pg_connections import Address, PostgresConnections, roll_back, run, translate_errors
from munjang.library.pg_schema import add_later_columns, create, exists, make_index, read_settings, write_settings
from munjang.library.sql_store import SqlStore
from munjang.library.store import ADVICE, Change, CommitUnknown, NewWeights, Scored, Settings, StoredCodebook
from munjang.library.where import Condition
from munjang.types import Vectors

if TYPE_CHECKING:
    import psycopg

INDEXED_FROM = 5_000


class PgvectorStore(SqlStore["psycopg.Connection[Any]"]):
    """Documents, passages and vectors in PostgreSQL."""

    _connections: PostgresConnections

    def __init__(self, connections: PostgresConnections, uuid: str) -> None:
        super().__init__(connections.address.shown, uuid, connections, pg_read)

    @classmethod
    def open(cls, address: str, *, create_with: Settings | None = None, name: str | None = None) -> PgvectorStore:
        """Open a library; make it when it does not exist and settings are given.

        Messages call it by its address; where it has a name, by that one, and tell nothing of where it lies or who writes to it.
        """
        place = Address.parse(address, name=name)
        connections = PostgresConnections(place)
        connection = connections.take()
        try:
            with translate_errors(place):
                if create_with is not None and not exists(connection, place.schema):
                    create(connection, place.schema, create_with)
                if not exists(connection, place.schema):
                    raise InputError(f"{place.shown}: there is no such library\n  make it with munjang add, or check the address")
                uuid = str(run(connection, "SELECT uuid FROM settings").fetchone()[0])
        except BaseException:
            connection.close()
            raise
        connections.give_back(connection)
        return cls(connections, uuid)

    @contextmanager
    def writer(self, purpose: str, /, *, patience: float = 0.0) -> Iterator[None]:
        """Hold the right to write, or raise Busy with whoever holds it; the server lets those who wait in by their turn."""
        connection = self._connections.take()
        try:
            with translate_errors(self._connections.address):
                self._lock(connection, patience)
                with connection.transaction():
                    run(connection, "SET LOCAL synchronous_commit = off")  # who writes is for people: it need not be on disk
                    run(connection, "DELETE FROM writer")
                    since = datetime.now(UTC).isoformat(timespec="seconds")
                    run(connection, "INSERT INTO writer VALUES (%s, %s, %s)", (os.getpid(), since, json.dumps(purpose)))
            with self._writing_with(connection):
                yield
        finally:
            _release(connection)
            self._connections.give_back(connection)

    def _lock(self, connection: psycopg.Connection[Any], patience: float) -> None:
        """Take the advisory lock, or raise Busy when others hold it for more than `patience` seconds."""
        import psycopg

        key = (f"munjang {self._connections.address.schema}",)
        try:
            if patience <= 0:
                held = run(connection, "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key).fetchone()[0]
            else:
                run(connection, f"SET lock_timeout = {max(1, round(patience * 1_000))}")
                run(connection, "SELECT pg_advisory_lock(hashtextextended(%s, 0))", key)
                held = True
        except psycopg.errors.LockNotAvailable:
            held = False
        if patience > 0:
            run(connection, "RESET lock_timeout")
        if not held:
            holder = "someone else" if self._connections.address.discreet else _holder(connection)
            raise Busy(f"{self.name}: {holder} is writing\n  {ADVICE}")

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None, codebook: StoredCodebook | None = None) -> None:
        """Write all changes in one durable transaction."""
        if settings is not None or (isinstance(changes, list) and any(isinstance(change, NewWeights) for change in changes)):
            with translate_errors(self._connections.address):
                add_later_columns(self._held())
        with self._committed() as connection:
            if settings is not None:
                write_settings(connection, settings)
                pg_tokens.drop_codebook(connection)
            if codebook is not None:
                pg_tokens.write_codebook(connection, codebook)
            book = codebook or pg_tokens.read_codebook(connection)
            dimension = (settings or read_settings(connection)).dimension
            writing = pg_write.Writing(connection, dimension=dimension, microseconds=_microseconds(), codebook=book)
            writing.take(changes)
            if settings is not None:
                run(connection, "DELETE FROM documents WHERE number <= %s", (writing.before,))
            if run(connection, "SELECT count(*) FROM passages").fetchone()[0] >= INDEXED_FROM:
                make_index(connection, dimension)

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        count = 0
        try:
            with self._committed() as connection:
                count = pg_write.delete_documents(connection, ids)
        except CommitUnknown as error:
            error.result = count
            raise
        return count

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
            found = list(pg_read.findings(connection, dimension=read_settings(connection).dimension))
            return [*found, *pg_tokens.findings(connection)]

    def compact(self) -> None:
        """Let the server use the space of deleted documents again."""
        with translate_errors(self._connections.address):
            tokens = ("token_codes",) if pg_tokens.has_tables(self._held()) else ()
            for table in ("documents", "passages", "words", *tokens):
                run(self._held(), f"VACUUM (ANALYZE) {table}")

    @contextmanager
    def _committed(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a transaction that counts as a new generation."""
        connection = self._held()
        with translate_errors(self._connections.address):
            run(connection, "BEGIN")
            try:
                yield connection
                run(connection, "UPDATE settings SET generation = greatest(generation + 1, %s)", (_microseconds(),))
            except BaseException:
                roll_back(connection)
                raise
            self._commit(connection)

    def _commit(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg

        try:
            run(connection, "COMMIT")
        except psycopg.Error as error:
            if not connection.closed:
                raise
            fact = f"{self.name}: the connection was lost while the server wrote, so the last change may be there or not"
            lost = CommitUnknown(f"{fact}\n  do it again: what is there is passed over")
            raise lost from error


def _release(connection: psycopg.Connection[Any]) -> None:
    """Give the lock back; a connection on which that fails is closed, and the server gives it back."""
    import psycopg

    roll_back(connection)
    try:
        if not connection.closed:
            run(connection, "SELECT pg_advisory_unlock_all()")
    except psycopg.Error:
        connection.close()


def _holder(connection: psycopg.Connection[Any]) -> str:
    found = run(connection, "SELECT pid, purpose, since FROM writer").fetchone()
    return "another process" if found is None else f"process {found[0]} ({quote(json.loads(found[1]))}, since {quote(found[2])})"


def _microseconds() -> int:
    return time.time_ns() // 1_000
