"""An SQLite file and its write-ahead log → a sum over each page as the last commit left it.

A page stands in the file, or, when it was committed since, in the log. Both are read as files, at some gigabytes a second and without
SQLite, which reads a damaged page as readily as a whole one. Whoever reads while another process commits may see pages of two commits.

The database is read through a descriptor that SQLite itself has open: POSIX takes all locks of a process from a file as soon as the process
closes any descriptor of it, and a library without its locks can lose its log to another process. The log has no locks.

A page's sum is that of its 32-bit words, each times an odd number of its own, modulo 2^64. Every change of one word changes it; another
change is missed with a chance of at most 2^-33.

Shapes: N pages, W words of a page.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.types import Ints

Sums: TypeAlias = NDArray[np.uint64]

AT_ONCE = 256
"""Pages that are read and summed together."""

NO_FILE = -1
"""In the place of a descriptor: every page wanted is in the log."""

_DESCRIPTORS = Path("/dev/fd")
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24


@dataclass(frozen=True)
class LogPosition:
    """How far a log has been read; a log that began anew has other salts."""

    salts: bytes = b""
    frames: int = 0


@dataclass(frozen=True)
class LogPages:
    """The pages of a log that were committed behind a position."""

    end: LogPosition
    size: int | None
    """Pages of the database after the last of these commits; None when there was none."""
    offsets: dict[int, int]
    """The number of each page (from 0), and where its newest content stands in the log."""


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


def read_log(path: Path, *, after: LogPosition | None = None) -> LogPages:
    """Return what a database's log holds behind a position; a log that began anew since then is read from its beginning."""
    after = after or LogPosition()
    try:
        with _opened(log_of(path)) as handle:
            header = os.pread(handle, _LOG_HEADER, 0)
            if len(header) < _LOG_HEADER:
                return LogPages(LogPosition(), None, {})
            salts = header[16:24]
            page_bytes = int.from_bytes(header[8:12], "big")
            return _committed(handle, salts, page_bytes, after.frames if after.salts == salts else 0)
    except FileNotFoundError:
        return LogPages(LogPosition(), None, {})


def _committed(handle: int, salts: bytes, page_bytes: int, first: int) -> LogPages:
    """Read the headers of frames until one is not of this log; what follows the last commit was never finished."""
    offsets: dict[int, int] = {}
    pending: dict[int, int] = {}
    frame, end, size = first, first, None
    while True:
        at = _LOG_HEADER + frame * (_FRAME_HEADER + page_bytes)
        header = os.pread(handle, _FRAME_HEADER, at)
        if len(header) < _FRAME_HEADER or header[8:16] != salts:
            return LogPages(LogPosition(salts, end), size, offsets)
        frame += 1
        pending[int.from_bytes(header[:4], "big") - 1] = at + _FRAME_HEADER
        if commit := int.from_bytes(header[4:8], "big"):
            offsets |= pending
            pending, end, size = {}, frame, commit


def descriptor_of(path: Path) -> int | None:
    """Return a descriptor under which this process has the database open; None when there is none. Its owner may close it at any time."""
    wanted = path.stat()
    for each in _DESCRIPTORS.iterdir() if _DESCRIPTORS.is_dir() else ():
        try:
            found = os.fstat(int(each.name))
        except (OSError, ValueError):
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return int(each.name)
    return None


def page_bytes_of(file: int) -> int | None:
    """Return how long a database's pages are; None when its header says nothing that could be true."""
    header = os.pread(file, _FILE_HEADER, 0)
    size = int.from_bytes(header[16:18], "big")
    size = 65_536 if size == 1 else size
    return size if len(header) == _FILE_HEADER and 512 <= size <= 65_536 and size & (size - 1) == 0 else None


def page_count(file: int, page_bytes: int, log: LogPages) -> int:
    """Return how many pages the last commit has."""
    return os.fstat(file).st_size // page_bytes if log.size is None else log.size


def sum_file(path: Path, file: int, page_bytes: int, log: LogPages, wanted: Ints) -> Iterator[tuple[Ints, Sums]]:
    """Yield the numbers and sums of these pages, in blocks; what is cut off counts as zeros."""
    weights_W = _weights(page_bytes)
    block = np.empty((AT_ONCE, page_bytes), dtype=np.uint8)
    logged_N = np.fromiter(log.offsets, dtype=np.int64)
    with _opened(log_of(path)) if log.offsets else nullcontext(NO_FILE) as log_file:
        for start in range(0, len(wanted), AT_ONCE):
            part_N = wanted[start : start + AT_ONCE]
            in_log_N = np.isin(part_N, logged_N)
            part_N = np.concatenate([part_N[~in_log_N], part_N[in_log_N]])
            count = len(part_N) - int(in_log_N.sum())
            _fill(block, file, part_N[:count], page_bytes)
            for i in range(count, len(part_N)):
                _read(log_file, block[i], log.offsets[int(part_N[i])])
            yield part_N, np.einsum("nw,w->n", block[: len(part_N)].view("<u4"), weights_W)


def _fill(block: NDArray[np.uint8], file: int, pages_N: Ints, page_bytes: int) -> None:
    """Read pages, those that follow one another with one call."""
    if not len(pages_N):
        return
    edges = [0, *(np.flatnonzero(np.diff(pages_N) != 1) + 1).tolist(), len(pages_N)]
    for first, stop in pairwise(edges):
        _read(file, block[first:stop].reshape(-1), int(pages_N[first]) * page_bytes)


def _read(handle: int, into: NDArray[np.uint8], at: int) -> None:
    view = into.data
    while len(view):
        count = os.preadv(handle, [view], at)
        if not count:
            into[len(into) - len(view) :] = 0
            return
        view, at = view[count:], at + count


def _weights(page_bytes: int) -> Sums:
    raw = hashlib.shake_256(b"munjang page sums").digest(2 * page_bytes)
    return np.frombuffer(raw, dtype="<u8") | np.uint64(1)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
