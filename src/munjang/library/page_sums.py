"""The sums of a library file's pages, as they stand in a cache beside it, and which of the pages a search passes over.

They are a cache like the others: whoever reads them gets what was written for this very library, or nothing, and nothing is lost with them
but time. See sqlite_verify.py for who keeps them and what for.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from munjang.library.cache_file import read_cache, write_cache
from munjang.library.sqlite_pages import Sums, descriptor_of, page_bytes_of, page_count, read_log, sum_file
from munjang.types import Ints

FILE, MARK = "pages.cache", "pages.mark"

NEW, SEARCHED, PASSED_OVER = 0, 1, 2
"""Kinds of pages: written since pages were last told apart; read by searches; not needed by them."""

CLASSIFIED_BYTES = 16 * 2**20
"""Below, telling pages apart costs more than it saves."""

_PASSED_OVER_TABLES = ("vectors", "words_content")


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
