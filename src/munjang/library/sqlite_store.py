"""The store that a library has by default: one SQLite file. See store.py for what every method promises."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from munjang.errors import InputError, UsageError
from munjang.library import sqlite_read, sqlite_write
from munjang.library.sqlite_check import findings
from munjang.library.sqlite_files import BUSY_SECONDS, Connections, open_connection, transaction, translated
from munjang.library.sqlite_schema import check_is_library, create, read_settings, write_settings
from munjang.library.store import BLOCK, Change, Document, Entry, Place, Scored, Settings, VectorBlock
from munjang.library.where import Condition
from munjang.library.writer_lock import hold
from munjang.types import Ints


class SqliteStore:
    """Documents, passages and vectors in one SQLite file."""

    def __init__(self, path: Path, connections: Connections, uuid: str) -> None:
        self._path = path
        self._connections = connections
        self._uuid = uuid
        self._writing = threading.local()

    @classmethod
    def open(cls, path: str | Path, *, create_with: Settings | None = None) -> SqliteStore:
        """Open a library file; make it when it does not exist and settings are given."""
        path = Path(path)
        if create_with is not None and _needs_creating(path):
            if not path.absolute().parent.is_dir():
                raise InputError(f"{path}: there is no folder {path.absolute().parent}\n  make the folder first")
            with hold(_lock_of(path), name=str(path), purpose="make", patience=BUSY_SECONDS):
                create(path, create_with)
        if not path.is_file():
            raise InputError(f"{path}: there is no such library\n  make it with munjang add, or check the path")
        connections = Connections(path)
        with connections.reader() as connection:
            check_is_library(connection, path)
            uuid = str(connection.execute("SELECT uuid FROM settings").fetchone()[0])
        return cls(path, connections, uuid)

    @property
    def name(self) -> str:
        """The path as it was given."""
        return str(self._path)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

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
            return int(connection.execute("SELECT generation FROM settings").fetchone()[0])

    @contextmanager
    def writer(self, purpose: str, /) -> Iterator[None]:
        """Hold the right to write, or raise Busy with whoever holds it."""
        with hold(_lock_of(self._path), name=self.name, purpose=purpose):
            connection = self._connections.writer()
            self._writing.connection = connection
            try:
                yield
            finally:
                self._writing.connection = None
                with translated(self.name):
                    connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread inside the block see one commit."""
        with self._connections.snapshot():
            yield

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None) -> None:
        """Write all changes in one durable transaction."""
        connection = self._held()
        with transaction(connection, self.name):
            before, rows = sqlite_write.last_number(connection), sqlite_write.new_rows(connection, microseconds=_microseconds())
            if settings is not None:
                write_settings(connection, settings)
            dimension = (settings or read_settings(connection)).dimension
            for change in changes:
                if isinstance(change, Entry):
                    sqlite_write.put_entry(connection, change, dimension=dimension, rows=rows)
                else:
                    sqlite_write.put_metadata(connection, change)
            if settings is not None:
                sqlite_write.delete_up_to(connection, before)
            sqlite_write.next_generation(connection, microseconds=_microseconds())

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        connection = self._held()
        with transaction(connection, self.name):
            count = sqlite_write.delete_documents(connection, ids)
            sqlite_write.next_generation(connection, microseconds=_microseconds())
        return count

    def get(self, ids: Sequence[str], /) -> dict[str, Document]:
        """Return those of the documents that exist, by id."""
        with self._connections.reader() as connection:
            return sqlite_read.read_documents(connection, ids, self.name)

    def entries(self, *, block: int = BLOCK) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors."""
        with self._connections.walk() as connection:
            dimension = read_settings(connection).dimension
            yield from sqlite_read.read_entries(connection, dimension=dimension, block=block, name=self.name)

    def vectors(self, *, after: int = 0, block: int = BLOCK) -> Iterator[VectorBlock]:
        """Yield the vectors of all rows greater than `after`."""
        with self._connections.walk() as connection:
            dimension = read_settings(connection).dimension
            yield from sqlite_read.read_vectors(connection, after=after, dimension=dimension, block=block, name=self.name)

    def vectors_of(self, rows: Sequence[int] | Ints, /) -> VectorBlock:
        """Return the vectors of those of these rows that exist."""
        with self._connections.snapshot() as connection:
            return sqlite_read.read_vectors_of(connection, rows, dimension=read_settings(connection).dimension, name=self.name)

    def rows(self, where: Condition | None = None, /) -> Ints:
        """Return the rows of all documents that meet the condition."""
        with self._connections.reader() as connection:
            return sqlite_read.read_rows(connection, where)

    def rows_of(self, ids: Sequence[str], /) -> Ints:
        """Return the rows of these documents."""
        with self._connections.reader() as connection:
            return sqlite_read.read_rows_of(connection, ids)

    def places(self, rows: Sequence[int] | Ints, /) -> dict[int, Place]:
        """Return where those of these rows stand that exist."""
        with self._connections.reader() as connection:
            return sqlite_read.read_places(connection, rows)

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that fit these words best."""
        with self._connections.reader() as connection:
            return sqlite_read.read_lexical(connection, words[: sqlite_read.MAX_WORDS], k, where)

    def count(self) -> tuple[int, int]:
        """Return the number of documents and of passages."""
        with self._connections.reader() as connection:
            documents, passages = connection.execute("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)").fetchone()
            return int(documents), int(passages)

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        connection = open_connection(self._path, write=True)
        try:
            return findings(connection, dimension=self.settings().dimension)
        finally:
            connection.close()

    def compact(self) -> None:
        """Give space that deleted documents left back to the disk."""
        connection = self._held()
        with translated(self.name):
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._connections.close()

    def _held(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._writing, "connection", None)
        if connection is None:
            raise UsageError(f"{self.name}: writing needs the writer's lock\n  write inside `with store.writer(…):`")
        return connection


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _needs_creating(path: Path) -> bool:
    """Say whether the file is missing, or was left without tables by someone who was killed while making it."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    connection = open_connection(path, write=False)
    try:
        with translated(str(path)):
            return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]) == 0
    finally:
        connection.close()


def _microseconds() -> int:
    return time.time_ns() // 1_000
