"""The store that a library has by default: one SQLite file. See store.py for what every method promises."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from uuid import uuid4

from munjang.atomic import PARTIAL, remove_abandoned, sync
from munjang.errors import InputError, MunjangError, UsageError
from munjang.file_lock import hold_lock, lock_files
from munjang.library import sqlite_read, sqlite_tokens, sqlite_write
from munjang.library.sql_store import SqlStore
from munjang.library.sqlite_cache import CommitCache
from munjang.library.sqlite_files import BUSY_SECONDS, SqliteConnections, open_connection, transaction, translate_errors
from munjang.library.sqlite_schema import check_is_library, create, read_settings, write_settings, write_weights
from munjang.library.sqlite_verify import Verifier
from munjang.library.sqlite_write import remove_unused, tidy_words
from munjang.library.store import (
    ADVICE,
    BLOCK,
    Change,
    Entry,
    NewMetadata,
    NewTokenCodes,
    NewWeights,
    Scored,
    Settings,
    StoredCodebook,
    StoreNode,
)
from munjang.library.where import Condition
from munjang.types import Ints

BACKUP_PAGES = 4_096
"""Pages that are copied at once."""


@dataclass(frozen=True)
class Made:
    """What opening a library has made besides its file."""

    locks: tuple[Path, ...]
    """The files of its lock, if there were none before."""


class SqliteStore(SqlStore[sqlite3.Connection]):
    """Documents, passages and vectors in one SQLite file."""

    _connections: SqliteConnections

    def __init__(self, path: Path, connections: SqliteConnections, uuid: str, *, made: Made | None = None) -> None:
        super().__init__(connections.name, uuid, connections, sqlite_read)
        self._path = path
        self._made = made
        self._verifier = Verifier(path, uuid, connections)
        self._cache = CommitCache()

    @classmethod
    def open(cls, path: str | Path, *, create_with: Settings | None = None, name: str | None = None) -> SqliteStore:
        """Open a library file; make it when it does not exist and settings are given.

        Messages call it by its path; where it has a name, by that one, and tell nothing of where it lies or who writes to it.
        """
        path, made = Path(path), None
        discreet, name = name is not None, name or str(path)
        if create_with is not None and _needs_creating(path, name):
            if not path.absolute().parent.is_dir():
                where = "for it" if discreet else path.absolute().parent
                raise InputError(f"{name}: there is no folder {where}\n  make the folder first")
            lock = _lock_of(path)
            with_lock = not lock.exists()
            with hold_lock(lock, name=name, purpose="make", patience=BUSY_SECONDS, advice=ADVICE, discreet=discreet):
                made = Made(lock_files(lock) if with_lock else ()) if create(path, create_with, name=name) else None
        if not path.is_file():
            raise InputError(f"{name}: there is no such library\n  make it with munjang add, or check the path")
        connections = SqliteConnections(path, name=name)
        with connections.reader() as connection:
            check_is_library(connection, name)
            uuid = str(connection.execute("SELECT uuid FROM settings").fetchone()[0])
        return cls(path, connections, uuid, made=made)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @contextmanager
    def writer(self, purpose: str, /, *, patience: float = 0.0) -> Iterator[None]:
        """Hold the right to write, or raise Busy with whoever holds it for so many seconds."""
        with hold_lock(
            _lock_of(self._path), name=self.name, purpose=purpose, patience=patience, advice=ADVICE, discreet=self.name != str(self._path)
        ):
            connection = self._connections.writer()
            try:
                self._verifier.begin_writing()
                with self._writing_with(connection):
                    yield
            finally:
                self._verifier.end_writing(connection)
                with translate_errors(self.name):
                    connection.close()

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None, codebook: StoredCodebook | None = None) -> None:
        """Write all changes in one durable transaction."""
        connection = self._held()
        with transaction(connection, self.name):
            before, rows = sqlite_write.last_number(connection), sqlite_write.new_rows(connection, microseconds=_microseconds())
            if settings is not None:
                write_settings(connection, settings)
                sqlite_tokens.drop_codebook(connection)
            if codebook is not None:
                sqlite_tokens.write_codebook(connection, codebook)
            book = codebook or sqlite_tokens.read_codebook(connection)
            dimension = (settings or read_settings(connection)).dimension
            for change in _gather_entries(changes):
                if isinstance(change, list):
                    sqlite_write.put_entries(connection, change, dimension=dimension, rows=rows, codebook=book)
                elif isinstance(change, NewTokenCodes):
                    sqlite_tokens.put_codes(connection, change.row, change.codes, book)
                elif isinstance(change, NewWeights):
                    write_weights(connection, change.weights)
                else:
                    sqlite_write.put_metadata(connection, change)
            if settings is not None:
                sqlite_write.delete_up_to(connection, before)
            sqlite_write.next_generation(connection, microseconds=_microseconds())
        self._verifier.take_commit()
        self._connections.check_in_place()  # what was written to a file that is gone is not there

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents and return how many of them existed."""
        connection = self._held()
        with transaction(connection, self.name):
            count = sqlite_write.delete_documents(connection, ids)
            sqlite_write.next_generation(connection, microseconds=_microseconds())
        self._verifier.take_commit()
        self._connections.check_in_place()
        return count

    def rows(self, where: Condition | None = None, /) -> Ints:
        """Return the rows of all documents that meet the condition."""
        with self._connections.snapshot() as connection:
            return self._cache.rows(connection) if where is None else self._cache.select(connection, where)

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that fit these words best."""
        with self._connections.snapshot() as connection:
            return self._cache.rank(connection, words, k, where)

    def word_frequencies(self, words: Sequence[str], /) -> tuple[int, list[int]]:
        """Return the number of passages, and how many of them hold each word."""
        with self._connections.snapshot() as connection:
            return self._cache.frequencies(connection, words)

    def discard_new(self) -> bool:
        """Remove the files of a library that was made by opening it here, unless something was written or others have it open."""
        if self._made is None:
            return False
        self._connections.close()
        try:
            with hold_lock(_lock_of(self._path), name=self.name, purpose="discard"):
                return remove_unused(self._path, self.uuid, locks=self._made.locks)
        except (MunjangError, OSError, sqlite3.Error):  # busy or damaged: what cannot be told to be unused stays
            return False

    def verify(self, *, whole: bool = False) -> None:
        """Raise DamagedFile if the file is not what was written."""
        self._verifier.verify(whole=whole)

    def entries(self, *, block: int = BLOCK, tokens: bool = False) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors; of a damaged file, where some may be missing, none."""
        self.verify(whole=True)
        yield from super().entries(block=block, tokens=tokens)

    def back_up(self, path: Path) -> None:
        """Write the library as it is at one commit to a new file, under a uuid of its own; others may write meanwhile."""
        if path.exists():
            raise UsageError(f"{path}: is there already, expected the name of a new file")
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.absolute().parent}\n  make the folder first")
        self.verify(whole=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
        try:
            temporary.touch()
            remove_abandoned(temporary, f".{escape(path.name)}.*{PARTIAL}*")
            with self._connections.walk() as source, translate_errors(str(path)), closing(sqlite3.connect(temporary)) as target:
                source.execute("SELECT 1 FROM settings").fetchone()  # from here on the connection sees this commit
                source.backup(target, pages=BACKUP_PAGES, progress=lambda *_: None)  # back in Python now and then, to be interrupted
            with translate_errors(str(path)), closing(open_connection(temporary, write=True)) as connection:
                connection.execute("UPDATE settings SET uuid = ?", (uuid4().hex,))
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sync(temporary)
            temporary.rename(path)
            sync(path.absolute().parent)
        finally:
            for ending in ("", "-journal", "-wal", "-shm"):
                temporary.with_name(temporary.name + ending).unlink(missing_ok=True)

    def nodes(self) -> list[StoreNode]:
        """Return the file."""
        return [StoreNode(self.name, 1, self._path.stat().st_size)]

    def check(self) -> list[str]:
        """Read everything and return what is wrong."""
        return self._verifier.check()

    def compact(self) -> None:
        """Give space that deleted documents left back to the disk."""
        connection = self._held()
        with translate_errors(self.name):
            tidy_words(connection)
            self._verifier.take_commit()
            connection.execute("VACUUM")
            self._verifier.take_commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connections."""
        self._verifier.close()
        super().close()


def _gather_entries(changes: Iterable[Change]) -> Iterator[NewMetadata | NewTokenCodes | NewWeights | list[Entry]]:
    """Yield the changes in their order, entries of different ids that follow each other as a list."""
    entries: dict[str, Entry] = {}
    for change in changes:
        if entries and (not isinstance(change, Entry) or change.document.id in entries or len(entries) == sqlite_write.ENTRIES_AT_ONCE):
            yield list(entries.values())
            entries = {}
        if isinstance(change, Entry):
            entries[change.document.id] = change
        else:
            yield change
    if entries:
        yield list(entries.values())


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _needs_creating(path: Path, name: str) -> bool:
    """Say whether the file is missing, or was left without tables by someone who was killed while making it."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    connection = open_connection(path, write=False, name=name)
    try:
        with translate_errors(name):
            return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]) == 0
    finally:
        connection.close()


def _microseconds() -> int:
    return time.time_ns() // 1_000
