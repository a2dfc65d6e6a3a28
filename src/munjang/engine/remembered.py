"""What was computed from large files, remembered for as long as the files stay as they were: a fingerprint need not read them again.

A file stays as it was while its place on the disk, its size and the times of its last change say so. The kernel sets the last of these
whenever a byte or a name changes, so no program can write without it being seen; where that time means something else (Windows), nothing
is remembered. A file that has just changed may change again within the same tick of the clock, so it is computed anew. After a week it is
read again all the same, in case the disk itself has lost a bit.

Nothing here is needed: without a place to write, or with a damaged file there, everything is computed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from munjang.atomic import atomic_write
from munjang.errors import MunjangError

SMALLEST = 2**24
"""Bytes of all files together from which remembering is sooner than reading."""
SETTLED_SECONDS = 2.0
LONGEST_SECONDS = 7 * 86_400.0
MOST = 256
FILE = "remembered.json"


def find_cache_home() -> Path:
    """Return the directory where finished graphs are kept."""
    return Path(os.environ.get("MUNJANG_HOME") or Path.home() / ".munjang") / "cache"


def remember(what: str, files: Iterable[Path], compute: Callable[[], str | None], *, home: Path | None = None) -> str | None:
    """Return what was computed from these files, or compute it now; None is never remembered."""
    now = time.time()
    key = _name_state(what, list(files), now)
    if key is None:
        return compute()
    place = (home or find_cache_home()) / FILE
    known = _read(place)
    value, since = known.get(key, ("", 0.0))
    if value and 0 <= now - since < LONGEST_SECONDS:
        return value
    found = compute()
    if found is not None:
        _write(place, {**_read(place), key: (found, now)})
    return found


def _name_state(what: str, files: list[Path], now: float) -> str | None:
    """Return a name for what is computed and the state of the files; None where it cannot be told, or reading them is as quick."""
    if os.name == "nt":
        return None
    try:
        states = [(str(file.resolve()), file.stat()) for file in files]
    except OSError:
        return None
    latest = max((max(state.st_mtime, state.st_ctime) for _, state in states), default=now)
    if sum(state.st_size for _, state in states) < SMALLEST or not latest < now - SETTLED_SECONDS:
        return None
    facts = [(path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for path, state in states]
    return hashlib.sha256(repr((what, facts)).encode()).hexdigest()[:40]


def _read(place: Path) -> dict[str, tuple[str, float]]:
    try:
        digest, _, content = place.read_bytes().partition(b"\n")
        if digest != _digest(content):
            return {}
        return {str(key): (str(value), float(since)) for key, (value, since) in json.loads(content).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(place: Path, known: dict[str, tuple[str, float]]) -> None:
    newest = sorted(known.items(), key=lambda each: each[1][1])[-MOST:]
    content = json.dumps(dict(newest)).encode()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(place, _digest(content) + b"\n" + content)
    except (OSError, MunjangError):
        pass


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
