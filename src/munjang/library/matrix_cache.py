"""The store's vectors, kept ready to be searched: in memory while there are few, in a mapped file beside the library when there are many.

`current` is asked inside a snapshot and answers for exactly that commit. It reads from the store only what it does not have; when a tenth
of the file is out of date, or the file is missing or damaged, the file is written anew. If the disk takes no file, memory has to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from munjang.library.cache_file import read_cache, write_cache
from munjang.library.matrix import Matrix, unit
from munjang.library.store import Store
from munjang.library.tuning import Tuning
from munjang.types import Ints, Vectors

FILE = "vectors.cache"


class MatrixCache:
    """The matrix of the last commit that was asked for."""

    def __init__(self, store: Store, folder: Path | None, tuning: Tuning) -> None:
        self._store, self._folder, self._tuning = store, folder, tuning
        self._lock = threading.Lock()
        self._last: Matrix | None = None

    def current(self) -> Matrix:
        """Return the matrix of the commit that this thread's snapshot sees."""
        with self._lock:
            generation = self._store.generation()
            if self._last is None or self._last.generation != generation:
                self._last = self._renewed(generation)
            return self._last

    def forget(self) -> None:
        """Let go of memory and of the mapped file."""
        with self._lock:
            self._last = None

    def _renewed(self, generation: int) -> Matrix:
        rows = self._store.rows()
        dimension = self._store.settings().dimension
        last = self._last if self._last is not None and self._last.base_MD.shape[1] == dimension else None
        matrix = _adapted(last or self._loaded(dimension), rows, generation, self._store)
        if matrix is None:
            return self._built(rows, generation, dimension)
        stale = len(matrix.tail_rows) + len(matrix.rows_M) - len(matrix)
        if stale > self._tuning.stale_part * max(len(rows), self._tuning.cache_from):
            return self._built(rows, generation, dimension)
        return matrix

    def _loaded(self, dimension: int) -> Matrix | None:
        if self._folder is None:
            return None
        found = read_cache(self._folder / FILE, self._belongs_to(dimension))
        return None if found is None else _matrix(0, found["rows"], found["vectors"])

    def _built(self, rows: Ints, generation: int, dimension: int) -> Matrix:
        """Read every vector from the store, into the file if there are enough of them and the disk takes it."""
        if self._folder is not None and len(rows) >= max(1, self._tuning.cache_from):
            try:
                write_cache(self._folder / FILE, self._belongs_to(dimension), {"vectors": self._blocks(dimension), "rows": [rows]})
            except OSError:  # a full or read-only disk costs speed, not the answer
                pass
            found = self._loaded(dimension)
            if found is not None and np.array_equal(found.base_rows, rows):
                return _matrix(generation, found.base_rows, found.base_MD)
        return _matrix(generation, rows, np.concatenate(list(self._blocks(dimension))))

    def _blocks(self, dimension: int) -> Iterator[Vectors]:
        yield np.empty((0, dimension), dtype=np.float32)
        for block in self._store.vectors():
            yield unit(block.vectors_ND)

    def _belongs_to(self, dimension: int) -> dict[str, str | int]:
        return {"what": "unit vectors", "uuid": self._store.uuid, "dimension": dimension}


def _matrix(generation: int, rows: Ints, vectors_MD: Vectors) -> Matrix:
    dimension = vectors_MD.shape[1]
    return Matrix(generation, rows, vectors_MD, np.empty(0, np.int64), np.empty((0, dimension), np.float32), None)


def _adapted(old: Matrix | None, rows: Ints, generation: int, store: Store) -> Matrix | None:
    """Bring an older matrix up to date with what was added behind its last row; None when that is not enough."""
    if old is None:
        return None
    known = np.isin(rows, old.rows_M, assume_unique=True)
    newest = int(old.rows_M[-1]) if len(old.rows_M) else 0
    fresh = rows[~known]
    if len(fresh) and int(fresh[0]) <= newest:
        return None
    blocks = list(store.vectors(after=newest)) if len(fresh) else []
    tail_rows = np.concatenate([old.tail_rows, *(block.rows_N for block in blocks)])
    tail_MD = np.concatenate([old.tail_MD, *(unit(block.vectors_ND) for block in blocks)])
    all_rows = np.concatenate([old.base_rows, tail_rows])
    alive_P = None if len(all_rows) == len(rows) else np.flatnonzero(np.isin(all_rows, rows, assume_unique=True))
    return Matrix(generation, old.base_rows, old.base_MD, tail_rows, tail_MD, alive_P)
