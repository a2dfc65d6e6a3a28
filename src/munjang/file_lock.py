"""One holder at a time, across threads and processes, and a name for whoever waits.

The operating system locks a file (`filelock`), so a killed holder leaves no lock behind. The file says who holds it and since when: that is
for people, only the lock itself counts. The holder may remove the file: those who wait then lock the one that is at its path by then.

Of those who wait, the next one holds a second file, `PATH.next`, until it has the lock. So whoever lets go and wants the lock again cannot
overtake it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from munjang.errors import Busy, InputError, quote
from munjang.options import Option

if TYPE_CHECKING:
    from filelock import BaseFileLock

PatienceOption: TypeAlias = Annotated[float, Option("Seconds to wait for other writers of the library.", min=0, max=86_400)]
PATIENCE = 30.0
"""Seconds that a writer waits for its turn where nobody says how long."""

POLL_SECONDS = 0.005
"""How often a waiting process looks again."""


@contextmanager
def hold_lock(
    path: Path,
    *,
    name: str,
    purpose: str,
    patience: float = 0.0,
    advice: str = "try again when it is done, or wait longer",
    discreet: bool = False,
) -> Iterator[None]:
    """Hold the lock file at `path`; when others hold it for more than `patience` seconds, raise Busy and say who.

    `name` is what is locked, `purpose` is told to others. With `discreet` a message tells neither who nor where, since strangers read it.
    """
    lock = _acquire(path, name if discreet else str(path), time.monotonic() + patience)
    if lock is None:
        raise Busy(f"{name}: {'someone else' if discreet else _read_holder(path)} is writing\n  {advice}")
    try:
        _sign(path, lock, purpose)
        yield
    finally:
        lock.release()


def lock_files(path: Path) -> tuple[Path, Path]:
    """Return the files that a lock may leave behind."""
    return path, path.with_name(path.name + ".next")


def _acquire(path: Path, place: str, end: float) -> BaseFileLock | None:
    """Lock the file when it is this one's turn; None when that does not come before a moment of the monotonic clock."""
    _, queue = lock_files(path)
    if not queue.exists():  # nobody has ever waited here
        lock = _take(path, place, time.monotonic())
        if lock is not None:
            return lock
    turn = _take(queue, place, end)
    if turn is None:
        return None
    try:
        return _take(path, place, end)
    finally:
        turn.release()


def _take(path: Path, place: str, end: float) -> BaseFileLock | None:
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False)
    try:
        if not path.absolute().parent.is_dir():  # which filelock would make
            raise FileNotFoundError(2, os.strerror(2))
        lock.acquire(timeout=max(0.0, end - time.monotonic()), poll_interval=POLL_SECONDS)
    except Timeout:
        return None
    except OSError as error:
        raise InputError(f"{place}: cannot be opened for writing ({os.strerror(error.errno or 0)})") from None
    return lock


def _sign(path: Path, lock: BaseFileLock, purpose: str) -> None:
    from filelock import SoftFileLock

    if isinstance(lock, SoftFileLock):  # where the system has no locks, what the file holds is the lock
        return
    since = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        path.write_text(json.dumps({"pid": os.getpid(), "since": since, "purpose": purpose}), encoding="utf-8")
    except OSError:  # a full disk must not keep anyone from deleting
        pass


def _read_holder(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return f"process {int(found['pid'])} ({quote(str(found['purpose']))}, since {quote(str(found['since']))})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
