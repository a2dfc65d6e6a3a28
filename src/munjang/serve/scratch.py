"""The server's folder for what need not outlive it: uploads on their way, the sample collection.

A server that is killed cannot delete its folder, so the next one does. A lock file beside each folder says whose server lives: it is locked
before the folder is there, and the system lets go of it with the process. Folders without one are left alone.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = "munjang-serve-"
LOCK = ".lock"


class Scratch:
    """A folder of this server's own, deleted by `close`, or by the next server."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        clear_abandoned(parent)
        self.folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
        self._lock = FileLock(_lock_file(self.folder), thread_local=False)
        self._lock.acquire()
        self.folder.mkdir(mode=0o700)

    def close(self) -> None:
        """Delete the folder."""
        _delete(self.folder)
        self._lock.release()


def clear_abandoned(parent: Path) -> None:
    """Delete the folders whose servers are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        file = _lock_file(folder)
        if not folder.is_dir() or folder.is_symlink() or not file.is_file():
            continue
        with suppress(Timeout, OSError), FileLock(file, timeout=0, thread_local=False):  # a server lives, or it is another user's
            _delete(folder)


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + LOCK)


def _delete(folder: Path) -> None:
    """Delete a folder, then its lock file, which whoever calls holds."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):  # Windows lets nobody delete a file that is open; it is empty
            _lock_file(folder).unlink(missing_ok=True)
