"""One writer at a time, across threads and processes, with a name for whoever waits.

A lock file beside the library is locked by the operating system, so a killed writer leaves no lock behind. It says who holds it and since
when; what it says is for people, only the lock itself counts. Whoever holds it may remove it: those who wait then lock the file that is at
its path by then, never one that is gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from munjang.errors import Busy, InputError, shown


@contextmanager
def hold(path: Path, *, name: str, purpose: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file at `path`, or after `patience` seconds raise Busy with its holder.

    `name` is what is locked, `purpose` is told to others.
    """
    handle = _held(path, name, time.monotonic() + patience)
    try:
        _sign(handle, purpose)
        yield
    finally:
        os.close(handle)


def _held(path: Path, name: str, end: float) -> int:
    """Return the handle of the lock file at `path`, locked."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"{path}: cannot be opened for writing ({os.strerror(error.errno or 0)})") from None
        try:
            if not _locked(handle, end):
                raise Busy(f"{name}: {_holder(handle)} is writing\n  try again when that is done; searching works meanwhile")
            if _is_at(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    """Say whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _locked(handle: int, end: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        else:
            return True


def _sign(handle: int, purpose: str) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    line = json.dumps({"pid": os.getpid(), "since": since, "purpose": purpose}).encode()
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, line, 0)
    except OSError:  # a full disk must not keep anyone from deleting
        pass


def _holder(handle: int) -> str:
    try:
        found = json.loads(os.pread(handle, 4_096, 0))
        return f"process {int(found['pid'])} ({shown(str(found['purpose']))}, since {shown(str(found['since']))})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
