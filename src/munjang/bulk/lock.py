"""One run at a time in an output folder. The system lets go of the lock when its holder ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from munjang.bulk.storage import is_url
from munjang.errors import Busy

LOCK = ".lock"


@contextmanager
def only_run(place: str) -> Iterator[None]:
    """Hold a folder's lock, or say that another run does; an object store has none, and two runs there only do work twice."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    if is_url(place):
        yield
        return
    with (Path(place) / LOCK).open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"{place}: another run is writing here\n  wait until it ends") from None
        yield
