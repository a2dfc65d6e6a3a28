"""Rows dealt into lists ↔ files in the order of the lists, written a run of rows at a time and read a list at a time.

A run holds the rows of a part of the input, those of a list one after the other: first the rows whose own list it is, then its visitors.
So a list is read as one slice of every run. Rows stay as they were handed in, float32, float16 or bytes. A run appears whole or not at
all; one that is there need not be written again.

Shapes: N rows of the input, E entries of a run, L lists, D dimensions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.atomic import atomic_file
from munjang.types import Ints
from munjang.vectors.inverted_lists import Placed


@dataclass(frozen=True, eq=False)
class ListSlice:
    """Entries of a list: the row of each, its numbers, and how many of them, from the first, have this list as their own."""

    row_E: Ints
    vectors_ED: NDArray[Any]
    own: int


@dataclass(eq=False)
class ListRuns:
    """The runs in a folder."""

    folder: Path
    dtype: np.dtype[Any]
    dimension: int
    lists: int
    _begin: dict[int, Ints] = field(default_factory=dict)
    """For each run where lists begin: the own rows of list l at 2·l, its visitors at 2·l + 1."""

    @property
    def entry(self) -> np.dtype[Any]:
        """A row of the input and its numbers."""
        return np.dtype([("row", "<i8"), ("vector", self.dtype, (self.dimension,))])

    @property
    def written(self) -> int:
        """How many runs are known."""
        return len(self._begin)

    def has(self, run: int) -> bool:
        """Say whether a run was written, and know it then."""
        path = self._path(run)
        if run not in self._begin and path.is_file():
            begins = np.load(path.with_suffix(".npy"), allow_pickle=False)
            if path.stat().st_size == int(begins[-1]) * self.entry.itemsize:
                self._begin[run] = begins
        return run in self._begin

    def write(self, run: int, row_N: Ints, vectors_ND: NDArray[Any], placed: Placed) -> None:
        """Write the rows of a part of the input; `placed` counts places among them."""
        place_E = np.concatenate([np.arange(len(row_N)), placed.row_V])
        half_E = np.concatenate([2 * placed.own_N, 2 * placed.list_V + 1])
        order = np.argsort(half_E, kind="stable")
        begins = np.searchsorted(half_E[order], np.arange(2 * self.lists + 1))
        place_E = place_E[order]
        with atomic_file(self._path(run).with_suffix(".npy")) as handle:
            np.save(handle, begins, allow_pickle=False)
        with atomic_file(self._path(run)) as handle:
            for start in range(0, len(place_E), 65_536):
                some = place_E[start : start + 65_536]
                entries = np.empty(len(some), dtype=self.entry)
                entries["row"], entries["vector"] = row_N[some], vectors_ND[some]
                handle.write(entries.data)
        self._begin[run] = begins

    def read(self, number: int) -> ListSlice:
        """Return all entries of a list, its own rows first, each kind by ascending rows."""
        parts = [self._read_half(run, 2 * number + half) for half in (0, 1) for run in sorted(self._begin)]
        entries = np.concatenate(parts)
        own = sum(int(begins[2 * number + 1] - begins[2 * number]) for begins in self._begin.values())
        return ListSlice(entries["row"].astype(np.int64), entries["vector"], own)

    def sizes(self) -> tuple[Ints, Ints]:
        """Return how many rows every list has of its own, and how many visitors."""
        size_H = np.sum([np.diff(begins) for begins in self._begin.values()], axis=0)
        return size_H[0::2], size_H[1::2]

    def _read_half(self, run: int, half: int) -> NDArray[Any]:
        begin, end = self._begin[run][half : half + 2].tolist()
        handle = os.open(self._path(run), os.O_RDONLY)
        try:
            content = os.pread(handle, (end - begin) * self.entry.itemsize, begin * self.entry.itemsize)
        finally:
            os.close(handle)
        return np.frombuffer(content, dtype=self.entry)

    def _path(self, run: int) -> Path:
        return self.folder / f"run-{run:06d}.rows"
