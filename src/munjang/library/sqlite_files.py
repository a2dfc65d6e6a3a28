"""An SQLite file as a library needs it: connections per thread, snapshots, and SQLite's errors in our words.

Every commit is on disk before it returns (write-ahead log, synchronous=FULL). A reading connection cannot write. A file on a read-only disk
is read without SQLite's files beside it. Nothing here knows documents; the tables stand in sqlite_schema.py.

Messages call the library by the name that it was opened with, so that a server need not tell its clients where it lies.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from munjang.errors import Busy, DamagedFile, InputError, MunjangError, NoSpace
from munjang.library.where_sql import add_functions

BUSY_SECONDS = 10.0
"""How long a connection waits for a moment when another one finishes a step of its own."""

PAGE_BYTES = 8_192

_NO_SPACE = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_SHMSIZE"}
_DAMAGED_WORDS = ("Could not decode to UTF-8", "malformed", "file format", "no such ", "has no column named")
"""What SQLite says without a code of its own; our statements name only what every library has, so what is not there is damaged."""


class LibraryGone(InputError):
    """There is no file any more where the library was."""

    http_status = 404


class LibraryReplaced(InputError):
    """Another file lies where the library was."""

    http_status = 503


class LibraryConnection(sqlite3.Connection):
    """A connection that knows what people call its library."""

    library = ""


class SqliteConnections:
    """The connections of one library file: one reader per thread, and one writer.

    SQLite goes on with the file it has open when somebody removes it or puts another in its place, and would mix its log with the new
    one's. So every read and write asks first whether the file is still the one that was opened, and is refused if it is not.
    """

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path, self.name = path, name or str(path)
        self.read_only = not is_writable(path)
        self._file = _file_at(path)
        self._state = _state_of(path)
        self._local = threading.local()
        self._all: weakref.WeakSet[_Own] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._closed = False

    def writer(self) -> sqlite3.Connection:
        """Return a new connection that can write; the caller closes it."""
        self.check_in_place()
        return open_connection(self.path, write=True, name=self.name)

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Lend this thread's reading connection."""
        with translate_errors(self.name):
            yield self._mine()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Lend this thread's connection inside one read transaction; nested snapshots are the outermost one."""
        with translate_errors(self.name):
            connection = self._mine()
            self._local.depth = getattr(self._local, "depth", 0) + 1
            try:
                if self._local.depth == 1:
                    connection.execute("BEGIN")
                yield connection
            finally:
                self._local.depth -= 1
                if self._local.depth == 0 and connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def walk(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for a long walk over one commit: the snapshot's if the thread is in one, otherwise a connection of its own."""
        if getattr(self._local, "depth", 0):
            with self.snapshot() as connection:
                yield connection
            return
        self.check_in_place()
        with translate_errors(self.name):
            connection = open_connection(self.path, write=False, name=self.name)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    def check_in_place(self) -> None:
        """Refuse to go on when the library's file is no longer at its path."""
        found = _file_at(self.path)
        if found is None:
            raise LibraryGone(f"{self.name}: the library's file is gone\n  put it back and open the library again, or create a new one")
        if found != self._file:
            raise LibraryReplaced(
                f"{self.name}: another file was put in the library's place while it was open\n"
                "  close it and open it again; stop a server before you replace its libraries"
            )

    def close(self) -> None:
        """Close every reading connection, of whichever thread."""
        with self._guard:
            self._closed = True
            for own in list(self._all):
                own.connection.close()

    def _mine(self) -> sqlite3.Connection:
        mine: _Own | None = getattr(self._local, "mine", None)
        if self._closed:
            raise InputError(f"{self.name}: the library is closed\n  open it again")
        if not getattr(self._local, "depth", 0):  # what has begun ends on the file on which it began
            self.check_in_place()
            self._follow_changes()
        if mine is not None and mine.process == os.getpid() and mine.state == self._state:  # a connection does not survive a fork
            return mine.connection
        mine = _Own(open_connection(self.path, write=False, name=self.name), os.getpid(), self._state)
        with self._guard:
            self._all.add(mine)
        self._local.mine, self._local.depth = mine, 0
        return mine.connection

    def _follow_changes(self) -> None:
        """On a read-only disk, take note of what someone wrote through another mount, which SQLite does not expect there."""
        if self.read_only:
            self._state = _state_of(self.path)


class _Own:
    """A thread's connection, which goes when the thread does."""

    def __init__(self, connection: sqlite3.Connection, process: int, state: tuple[int, ...]) -> None:
        self.connection, self.process, self.state = connection, process, state

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return which file lies at a path: its device and its number there."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _state_of(path: Path) -> tuple[int, ...]:
    """Return what changes when somebody writes to a library: sizes and times of its file and its log."""
    found: list[int] = []
    for file in (path, log_of(path)):
        try:
            facts = file.stat()
            found += [facts.st_size, facts.st_mtime_ns]
        except FileNotFoundError:
            found += [0, 0]
    return tuple(found)


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


def is_writable(path: Path) -> bool:
    """Say whether SQLite can write to a file, and make the files beside it that it needs even for reading."""
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def open_connection(path: Path, *, write: bool, name: str | None = None) -> sqlite3.Connection:
    """Open a library file that exists, with transactions left to the caller; without `write`, one on a read-only disk too."""
    name = name or str(path)
    if write or is_writable(path):
        return _connect(path, "mode=rw", name, query_only=not write)
    if _has_frames(path):
        return _connect_with_log(path, name)
    return _connect(path, "mode=ro&immutable=1", name, query_only=True)  # nothing is in the log: the file is all there is


def _has_frames(path: Path) -> bool:
    try:
        return log_of(path).stat().st_size > 0
    except FileNotFoundError:
        return False


def _connect_with_log(path: Path, name: str) -> sqlite3.Connection:
    """Open a file on a read-only disk whose log holds commits; SQLite needs its index, the -shm file, to read them."""
    connection = None
    try:
        connection = _connect(path, "mode=ro", name, query_only=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (InputError, sqlite3.OperationalError) as error:
        if connection is not None:
            connection.close()
        raise InputError(
            f"{name}: lies on a read-only disk, and its last commits are in the -wal file beside it, which cannot be read there\n"
            "  run munjang check on it where it can be written to, or copy both files to a folder that can"
        ) from error
    return connection


def _connect(path: Path, options: str, name: str, *, query_only: bool) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{options}"
    with translate_errors(name):
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=LibraryConnection
        )
        connection.library = name
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            if query_only:
                connection.execute("PRAGMA query_only = ON")
            if "mode=ro" in options:
                connection.execute("PRAGMA temp_store = MEMORY")  # there may be no place for a file
            add_functions(connection)
        except UnicodeDecodeError as error:  # SQLite names a damaged table, and Python cannot read the name
            connection.close()
            raise _make_damage_error(name, error) from error
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, name: str) -> Iterator[None]:
    """Commit what happens inside, durably, or leave everything as it was."""
    with translate_errors(name):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        ours = _ours(error, name)
        if ours is None:
            raise
        raise ours from error


def _ours(error: sqlite3.Error, name: str) -> MunjangError | None:
    code = str(getattr(error, "sqlite_errorname", ""))
    if code in _NO_SPACE:
        return NoSpace(f"{name}: the disk is full, or a quota or size limit is reached; what was there before is intact\n  free some space")
    if is_busy(error):
        return Busy(f"{name}: another program is using the file\n  try again later")
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return InputError(f"{name}: cannot be opened for reading and writing ({code})\n  check the path and its permissions")
    damaged = code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")) or any(word in str(error) for word in _DAMAGED_WORDS)
    return _make_damage_error(name, error) if damaged else None


def is_busy(error: Exception) -> bool:
    """Say whether another connection stands in the way, so that nothing is known about the file."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _make_damage_error(name: str, error: Exception) -> DamagedFile:
    return DamagedFile(f"{name}: the file is damaged ({error})\n  run munjang check, and restore it from a copy")
