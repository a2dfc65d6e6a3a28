"""An SQLite file and its write-ahead log → a sum over each page as the last commit left it.

A page stands in the file, or, when it was committed since, in the log. Both are read as files, at some gigabytes a second and without
SQLite, which reads a damaged page as readily as a whole one. Whoever reads while another process commits may see pages of two commits.

The database is read through a descriptor that SQLite itself has open: POSIX takes all locks of a process from a file as soon as the process
closes any descriptor of it, and a library without its locks can lose its log to another process. The log has no locks.

A page's sum is that of its 32-bit words, each times an odd number of its own, modulo 2^64. Every change of one word changes it; another
change is missed with a chance of at most 2^-33.

Shapes: N pages, W words of a page.

`PageSums` holds the sums of all pages, and which of them a search skips. It is kept in a cache like the others: whoever reads them gets
what was written for this very library, or nothing, and nothing is lost with them but time. See sqlite_verify.py for who keeps them and
what for.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.library.cache_file import read_cache, write_cache
from munjang.library.sqlite_files import log_of
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


def read_log(path: Path, *, after: LogPosition | None = None) -> LogPages:
    """Return what a database's log holds behind a position; a log that began anew since then is read from its beginning."""
    after = after or LogPosition()
    try:
        with _open(log_of(path)) as handle:
            header = os.pread(handle, _LOG_HEADER, 0)
            if len(header) < _LOG_HEADER:
                return LogPages(LogPosition(), None, {})
            salts = header[16:24]
            page_bytes = int.from_bytes(header[8:12], "big")
            return _read_committed(handle, salts, page_bytes, after.frames if after.salts == salts else 0)
    except FileNotFoundError:
        return LogPages(LogPosition(), None, {})


def _read_committed(handle: int, salts: bytes, page_bytes: int, first: int) -> LogPages:
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
    with _open(log_of(path)) if log.offsets else nullcontext(NO_FILE) as log_file:
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
def _open(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


FILE, MARK = "pages.cache", "pages.mark"

NEW, SEARCHED, PASSED_OVER = 0, 1, 2
"""Kinds of pages: written since pages were last told apart; read by searches; not needed by them."""

CLASSIFIED_BYTES = 16 * 2**20
"""Below, telling pages apart costs more than it saves."""

_PASSED_OVER_TABLES = ("vectors", "words_content", "token_codes")


@dataclass(frozen=True, eq=False)
class PageSums:
    """The sum and the kind of every page."""

    page_bytes: int
    sums_N: Sums
    kind_N: NDArray[np.uint8]

    @cached_property
    def all_N(self) -> Ints:
        """The numbers of all pages."""
        return np.arange(len(self.sums_N))

    @cached_property
    def searched_N(self) -> Ints:
        """The numbers of the pages that a search may need."""
        return np.flatnonzero(self.kind_N != PASSED_OVER)

    def has_sums_of(self, other: PageSums | None) -> bool:
        """Say whether these are the same pages."""
        return other is not None and np.array_equal(self.sums_N, other.sums_N)

    @property
    def has_many_new(self) -> bool:
        """Whether it pays to tell pages apart."""
        count = len(self.kind_N)
        return count * self.page_bytes >= CLASSIFIED_BYTES and 8 * int((self.kind_N == NEW).sum()) > count

    def with_pages(self, count: int, pages_N: Ints, sums_N: Sums) -> PageSums:
        """Return these sums after a commit that left `count` pages and wrote some of them."""
        sums, kinds = np.zeros(count, dtype=np.uint64), np.full(count, NEW, dtype=np.uint8)
        kept = min(count, len(self.sums_N))
        sums[:kept], kinds[:kept] = self.sums_N[:kept], self.kind_N[:kept]
        sums[pages_N], kinds[pages_N] = sums_N, NEW
        return replace(self, sums_N=sums, kind_N=kinds)


def sum_whole_file(path: Path) -> PageSums | None:
    """Return the sums of a database's pages as they are; None where its pages cannot be read. This process has it open."""
    file = descriptor_of(path)
    page_bytes = None if file is None else page_bytes_of(file)
    if file is None or page_bytes is None:
        return None
    log = read_log(path)
    count = page_count(file, page_bytes, log)
    sums = np.zeros(count, dtype=np.uint64)
    for part_N, found_N in sum_file(path, file, page_bytes, log, np.arange(count)):
        sums[part_N] = found_N
    return PageSums(page_bytes, sums, np.full(count, NEW, dtype=np.uint8))


def tell_apart(sums: PageSums, connection: sqlite3.Connection) -> PageSums:
    """Return the sums with the kind of every page, where SQLite says which page belongs to which table."""
    if len(sums.kind_N) * sums.page_bytes < CLASSIFIED_BYTES:
        return sums
    kinds = np.full(len(sums.kind_N), SEARCHED, dtype=np.uint8)
    try:
        for table in _PASSED_OVER_TABLES:
            found = connection.execute("SELECT pageno - 1 FROM dbstat WHERE name = ?", (table,))
            pages = np.fromiter((page for (page,) in found), dtype=np.int64)
            kinds[pages[pages < len(kinds)]] = PASSED_OVER
    except sqlite3.Error:  # an SQLite without dbstat
        return sums
    return replace(sums, kind_N=kinds)


def load_sums(folder: Path, uuid: str) -> PageSums | None:
    """Return the sums that were saved for this library, or None."""
    found = read_cache(folder / FILE, _belongs_to(uuid))
    return None if found is None else PageSums(int(found["page_bytes"][0]), found["sums"], found["kinds"])


def save_sums(folder: Path, uuid: str, sums: PageSums) -> None:
    """Write the sums, if the disk takes them; old ones that stay are not those of the file, which is noticed."""
    arrays = {"page_bytes": [np.array([sums.page_bytes])], "sums": [sums.sums_N], "kinds": [sums.kind_N]}
    try:
        write_cache(folder / FILE, _belongs_to(uuid), arrays)
    except OSError:
        pass


def discard_sums(path: Path) -> None:
    """Remove what was saved here for the library at a path, and the folder if nothing else is in it."""
    folder = folder_of(path)
    for name in (FILE, MARK):
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:  # other caches, or no folder
        pass


def folder_of(path: Path) -> Path:
    """Return the folder of a library's caches."""
    return path.with_name(path.name + ".cache")


def read_mark(folder: Path) -> int:
    """Return at which page the last process stopped."""
    try:
        return max(0, int((folder / MARK).read_text()))
    except (OSError, ValueError):
        return 0


def write_mark(folder: Path, page: int) -> None:
    """Say where the next process goes on."""
    try:
        (folder / MARK).write_text(str(page))
    except OSError:
        pass


def _belongs_to(uuid: str) -> dict[str, str | int]:
    return {"what": "sums of pages", "uuid": uuid}
