"""The store for what outgrows one file: PostgreSQL with pgvector, `postgresql://host/database#name`. See store.py for the promises.

One writer at a time holds an advisory lock of the server, which a lost connection gives back. Nearest vectors are found by reading all of
them, until `prepare` makes an index; it does so by itself from INDEXED_FROM passages on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from munjang.errors import Busy, InputError, UsageError, quote
from munjang.library import pg_read, pg_tokens, pg_write
from munjang.library.index_config import IndexMethod, IndexPrecision
from munjang.library.pg_cluster import (
    PROPAGATE,
    ClusterReader,
    begin_reading,
    check_coordinator,
    confirm_commit,
    count_shards,
    is_cluster,
    read_shards,
    read_window,
)
from munjang.library.pg_cluster_write import ClusterWriting, delete_gone, delete_left_over, mark_pending, publish_without
from munjang.library.pg_connections import Address, Executes, PostgresConnections, roll_back, run, translate_errors
from munjang.library.pg_index import (
    LARGEST,
    TRIED_K,
    NearIndex,
    choose_index,
    find_index,
    make_index,
    measure_effort,
    watch_build,
    write_effort,
)
from munjang.library.pg_schema import add_indexes, add_later_columns, create, exists, lacks_indexes, read_settings, write_settings
from munjang.library.sql_store import SqlStore
from munjang.library.store import ADVICE, Change, CommitUnknown, NewWeights, Progress, Scored, Settings, StoredCodebook, StoreNode
from munjang.library.turns import WriterTurns
from munjang.library.where import Condition
from munjang.types import Ints, Vectors

if TYPE_CHECKING:
    import psycopg

INDEXED_FROM = 20_000
"""Passages from which reading every vector for a search takes longer than some tens of milliseconds."""


class PgvectorStore(SqlStore[Executes]):
    """Documents, passages and vectors in PostgreSQL, on one server or spread over a cluster."""

    _connections: PostgresConnections

    def __init__(self, connections: PostgresConnections, uuid: str) -> None:
        super().__init__(connections.address.shown, uuid, connections, pg_read)
        self._known_lengths: tuple[int, pg_read.Lengths] | None = None

    @classmethod
    def open(
        cls, address: str, *, create_with: Settings | None = None, name: str | None = None, distributed: bool = False
    ) -> PgvectorStore:
        """Open a library; make it when it does not exist and settings are given, with `distributed` on all nodes of a Citus cluster.

        Messages call it by its address; where it has a name, by that one, and tell nothing of where it lies or who writes to it.
        """
        place = Address.parse(address, name=name)
        connections = PostgresConnections(place)
        connection = connections.take()
        try:
            with translate_errors(place):
                if create_with is not None and not exists(connection, place.schema):
                    create(connection, place.schema, create_with, distributed=distributed)
                if not exists(connection, place.schema):
                    raise InputError(f"{place.shown}: there is no such library\n  make it with munjang add, or check the address")
                uuid = str(run(connection, "SELECT uuid FROM settings").fetchone()[0])
                if is_cluster(connection):
                    check_coordinator(connection, place.shown)
                    connections.cluster = begin_reading
                elif distributed:
                    fact = f"{place.shown}: is a library on one server already"
                    raise UsageError(f"{fact}\n  copy it to a new one: munjang copy {place.shown} postgresql://…#name --distributed")
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
                add_later_columns(self._writer())
        if self._connections.cluster is not None:
            self._put_in_cluster(changes, settings, codebook)
            return
        with self._hold_generation() as connection:
            if settings is not None:
                write_settings(connection, settings)
                pg_tokens.drop_codebook(connection)
            if codebook is not None:
                pg_tokens.write_codebook(connection, codebook)
            book = codebook or pg_tokens.read_codebook(connection)
            dimension = (settings or read_settings(connection)).dimension
            writing = pg_write.Writing(connection, dimension=dimension, microseconds=_microseconds(), codebook=book)
            writing.take(changes)
            writing.keep_numbers()
            if settings is not None:
                run(connection, "DELETE FROM documents WHERE number <= %s", (writing.before,))

    def _put_in_cluster(self, changes: Iterable[Change], settings: Settings | None, codebook: StoredCodebook | None) -> None:
        """Write new documents on all nodes, and then let them count."""
        connection, address = self._writer(), self._connections.address
        with translate_errors(address):
            dimension = (settings or read_settings(connection)).dimension
            book = codebook or (None if settings is not None else pg_tokens.read_codebook(connection))
            writing = ClusterWriting(connection, dimension=dimension, microseconds=_microseconds(), codebook=book, name=self.name)
            mark_pending(connection)
        with self._transaction():
            writing.take(changes)
        with translate_errors(address):
            confirm_commit(connection, self.name)
        with self._transaction():
            writing.publish(generation=_microseconds(), settings=settings, codebook=codebook)
        delete_gone(connection, address.schema)

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        count, is_spread = 0, self._connections.cluster is not None
        try:
            with self._transaction() if is_spread else self._hold_generation() as connection:
                count = publish_without(connection, ids, _microseconds()) if is_spread else pg_write.delete_documents(connection, ids)
        except CommitUnknown as error:
            error.result = count
            raise
        if is_spread:
            delete_gone(connection, self._connections.address.schema)
        return count

    def nearest(self, query_D: Vectors, k: int, /, *, where: Condition | None = None, exact: bool = False) -> list[Scored]:
        """Return the k rows with the highest cosine; not `exact` asks the index, if there is one."""
        with self._connections.snapshot() as connection:
            dimension = read_settings(connection).dimension
            if query_D.shape != (dimension,):
                raise UsageError(f"query: found shape {query_D.shape}, expected {(dimension,)}")
            index = None if exact else find_index(connection, dimension)
            return pg_read.read_nearest(connection, query_D, k, where=where, index=index)

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that fit these words best."""
        with self._connections.snapshot() as connection:
            return pg_read.read_lexical(connection, words, k, where, lengths=self._lengths(connection))

    def word_frequencies(self, words: Sequence[str], /) -> tuple[int, list[int]]:
        """Return the number of passages, and how many of them hold each word."""
        with self._connections.snapshot() as connection:
            return pg_read.read_word_frequencies(connection, words, lengths=self._lengths(connection))

    def _lengths(self, connection: Executes) -> pg_read.Lengths:
        """Return what BM25 knows of all passages of a snapshot, remembered until the next commit."""
        generation = pg_read.read_generation(connection)
        known = self._known_lengths
        if known is None or known[0] != generation:
            known = self._known_lengths = generation, pg_read.read_lengths(connection)
        return known[1]

    def prepare(
        self,
        *,
        method: IndexMethod | None,
        precision: IndexPrecision | None,
        recall: float,
        patience: float,
        progress: Progress | None = None,
    ) -> str:
        """Make the index that is asked for, or one for a large library that has none, and say how searches are answered now."""
        is_spread = self._connections.cluster is not None
        with self._connections.reader() as connection:
            dimension = read_settings(connection).dimension
            found, passages = find_index(connection, dimension), pg_read.read_count(connection)[1]
            is_large = passages >= INDEXED_FROM
            is_incomplete = is_large and lacks_indexes(connection, distributed=is_spread)
        is_asked = method is not None or precision is not None
        wanted = found
        if is_asked or (found is None and is_large and dimension <= max(LARGEST.values())):
            wanted = choose_index(dimension, method, precision, found)
        new = wanted if found is None or wanted is None or wanted.name != found.name else None
        if new is not None or is_incomplete:
            turns = WriterTurns(self, patience)
            turns.repeat("index", lambda: self._build(new, passages, recall, progress, with_others=is_incomplete), wrote=lambda _: True)
        return "exact" if wanted is None else f"{wanted.method}, {wanted.precision}"

    def _build(self, index: NearIndex | None, passages: int, recall: float, progress: Progress | None, *, with_others: bool) -> None:
        """Make the indexes that are missing, in one transaction; the caller holds the writer's lock."""
        with self._transaction() as connection:
            if with_others:
                add_indexes(connection, distributed=self._connections.cluster is not None)
            if index is not None:
                self._build_near(connection, index, passages, recall, progress)
        with translate_errors(self._connections.address):
            run(connection, "VACUUM (ANALYZE) passages")  # what it has seen can be read from an index alone

    def _build_near(
        self, connection: psycopg.Connection[Any], index: NearIndex, passages: int, recall: float, progress: Progress | None
    ) -> None:
        """Make an index of vectors and measure how wide it has to look."""
        reading: Executes = connection
        if self._connections.cluster is not None:
            run(connection, PROPAGATE)
            reading = ClusterReader(connection, read_window(connection)[0])
            passages //= max(1, count_shards(connection))
        with watch_build(self._connections.connect, connection.info.backend_pid, progress):
            make_index(connection, index, passages)

        def find(row: int, by: NearIndex | None) -> Ints:
            vector_D = pg_read.read_vectors_of(reading, [row], dimension=index.dimension, name=self.name).vectors_ND[0]
            hits = pg_read.read_nearest(reading, vector_D, TRIED_K + 1, where=None, index=by)
            return np.array([hit.row for hit in hits], dtype=np.int64)

        rows = pg_read.read_rows(reading, None)
        write_effort(connection, measure_effort(index, rows, recall, find))

    def nodes(self) -> list[StoreNode]:
        """Return the server, or the nodes of the cluster; a library with a name of its own does not tell theirs."""
        with self._connections.reader() as connection:
            is_spread = self._connections.cluster is not None
            found = read_shards(connection) if is_spread else [("server", 1, pg_read.read_bytes(connection))]
        hidden = is_spread and self._connections.address.discreet
        return [StoreNode(f"node {place}" if hidden else name, *size) for place, (name, *size) in enumerate(found, 1)]

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        with self._connections.walk() as connection:
            found = list(pg_read.findings(connection, dimension=read_settings(connection).dimension))
            return [*found, *pg_tokens.findings(connection)]

    def compact(self) -> None:
        """Let the server use the space of deleted documents again."""
        connection = self._writer()
        with translate_errors(self._connections.address):
            if self._connections.cluster is not None:
                delete_gone(connection, self._connections.address.schema)
                delete_left_over(connection)
            tokens = ("token_codes",) if pg_tokens.has_tables(connection) else ()
            for table in ("documents", "passages", "words", *tokens):
                run(connection, f"VACUUM (ANALYZE) {table}")

    def _writer(self) -> psycopg.Connection[Any]:
        return cast("psycopg.Connection[Any]", self._held())  # what `writer` took

    @contextmanager
    def _hold_generation(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a transaction that counts as a new generation."""
        with self._transaction() as connection:
            yield connection
            run(connection, "UPDATE settings SET generation = greatest(generation + 1, %s)", (_microseconds(),))

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._writer()
        with translate_errors(self._connections.address):
            run(connection, "BEGIN")
            try:
                yield connection
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
