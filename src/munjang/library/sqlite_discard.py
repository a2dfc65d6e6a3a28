"""A library's file that was made and never written to → gone, if nobody else has it open.

The caller holds the writer's lock, so nobody writes meanwhile and nobody makes a library at the path. That nobody reads is what SQLite
says: a connection in exclusive mode is refused while any other one is open. Whoever opens the file in that moment gets `LibraryGone`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from munjang.library.page_sums import discard_sums
from munjang.library.sqlite_files import open_connection
from munjang.whole_file import sync

_FIRST_GENERATION = 1
"""Of a library that nothing was ever written to."""


def remove_unused(path: Path, uuid: str, *, lock: Path | None) -> bool:
    """Remove the library, SQLite's files beside it and the lock file; say whether that was done."""
    with closing(open_connection(path, write=True)) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        if not _is_unused(connection, uuid):
            return False
        path.unlink()
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    discard_sums(path)
    if lock is not None:
        lock.unlink(missing_ok=True)
    sync(path.absolute().parent)
    return True


def _is_unused(connection: sqlite3.Connection, uuid: str) -> bool:
    found = connection.execute("SELECT uuid, generation FROM settings").fetchone()
    documents = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    return tuple(found or ()) == (uuid, _FIRST_GENERATION) and documents == 0
