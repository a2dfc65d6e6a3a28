"""The store that a library has by default: one SQLite file. See store.py for what every method promises."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from munjang.errors import InputError, MunjangError
from munjang.library import sqlite_read, sqlite_write
from munjang.library.sql_store import SqlStore
from munjang.library.sqlite_discard import remove_unused
from munjang.library.sqlite_files import BUSY_SECONDS, Connections, open_connection, transaction, translated
from munjang.library.sqlite_schema import check_is_library, create, read_settings, write_settings
from munjang.library.sqlite_verify import Verifier
from munjang.library.sqlite_words import tidy_words
from munjang.library.store import BLOCK, Change, Entry, Settings
from munjang.library.writer_lock import hold


@dataclass(frozen=True)
class Made:
    """What opening a library has made besides its file."""

    lock: Path | None
    """The lock file, if there was none before."""


class SqliteStore(SqlStore[sqlite3.Connection]):
    """Documents, passages and vectors in one SQLite file."""

    _connections: Connections

    def __init__(self, path: Path, connections: Connections, uuid: str, *, made: Made | None = None) -> None:
        super().__init__(str(path), uuid, connections, sqlite_read)
        self._path = path
        self._made = made
        self._verifier = Verifier(path, uuid, connections)

    @classmethod
    def open(cls, path: str | Path, *, create_with: Settings | None = None) -> SqliteStore:
        """Open a library file; make it when it does not exist and settings are given."""
        path, made = Path(path), None
        if create_with is not None and _needs_creating(path):
            if not path.absolute().parent.is_dir():
                raise InputError(f"{path}: there is no folder {path.absolute().parent}\n  make the folder first")
            lock = _lock_of(path)
            with_lock = not lock.exists()
            with hold(lock, name=str(path), purpose="make", patience=BUSY_SECONDS):
                made = Made(lock if with_lock else None) if create(path, create_with) else None
        if not path.is_file():
            raise InputError(f"{path}: there is no such library\n  make it with munjang add, or check the path")
        connections = Connections(path)
        with connections.reader() as connection:
            check_is_library(connection, path)
            uuid = str(connection.execute("SELECT uuid FROM settings").fetchone()[0])
        return cls(path, connections, uuid, made=made)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @contextmanager
    def writer(self, purpose: str, /) -> Iterator[None]:
        """Hold the right to write, or raise Busy with whoever holds it."""
        with hold(_lock_of(self._path), name=self.name, purpose=purpose):
            connection = self._connections.writer()
            try:
                self._verifier.begin_writing()
                with self._writing_with(connection):
                    yield
            finally:
                self._verifier.end_writing(connection)
                with translated(self.name):
                    connection.close()

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
        self._verifier.committed()
        self._connections.check_in_place()  # what was written to a file that is gone is not there

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        connection = self._held()
        with transaction(connection, self.name):
            count = sqlite_write.delete_documents(connection, ids)
            sqlite_write.next_generation(connection, microseconds=_microseconds())
        self._verifier.committed()
        self._connections.check_in_place()
        return count

    def discard_new(self) -> bool:
        """Remove the files of a library that was made by opening it here, unless something was written or others have it open."""
        if self._made is None:
            return False
        self._connections.close()
        try:
            with hold(_lock_of(self._path), name=self.name, purpose="discard"):
                return remove_unused(self._path, self.uuid, lock=self._made.lock)
        except (MunjangError, OSError, sqlite3.Error):  # busy or damaged: what cannot be told to be unused stays
            return False

    def verify(self, *, whole: bool = False) -> None:
        """Raise DamagedFile if the file is not what was written."""
        self._verifier.verify(whole=whole)

    def entries(self, *, block: int = BLOCK) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors; of a damaged file, where some may be missing, none."""
        self.verify(whole=True)
        yield from super().entries(block=block)

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        return self._verifier.check()

    def compact(self) -> None:
        """Give space that deleted documents left back to the disk."""
        connection = self._held()
        with translated(self.name):
            tidy_words(connection)
            self._verifier.committed()
            connection.execute("VACUUM")
            self._verifier.committed()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connections."""
        self._verifier.close()
        super().close()


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
