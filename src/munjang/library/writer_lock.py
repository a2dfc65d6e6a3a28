"""One writer at a time, across threads and processes, with a name for whoever waits.

A lock file beside the library is locked by the operating system, so a killed writer leaves no lock behind. It says who holds it and since
when; what it says is for people, only the lock itself counts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from munjang.errors import Busy, InputError, shown


@contextmanager
def hold(path: Path, *, name: str, purpose: str) -> Iterator[None]:
    """Hold the lock file at `path`, or raise Busy with its holder; `name` is what is locked, `purpose` is told to others."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"{path}: cannot be opened for writing ({os.strerror(error.errno or 0)})") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy(f"{name}: {_holder(handle)} is writing\n  try again when that is done; searching works meanwhile") from None
        _sign(handle, purpose)
        yield
    finally:
        os.close(handle)


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
