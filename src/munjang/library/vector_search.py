"""Query vectors → the rows whose vectors are nearest, by the means that fits: exact, inverted lists, or the store's own index.

Below `Tuning.approximate_from` passages everything is exact. From there on lists are used if there are some that are not too old; they
are built by `prepare` (which `munjang add` calls) or when approximate search is asked for by name, never as a surprise inside a search.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from munjang.errors import UsageError
from munjang.library.index_config import IndexMethod, IndexPrecision, Tuning
from munjang.library.ivf_index import IvfIndex, build_lists, fit_lists, load_lists, save_lists
from munjang.library.matrix import Matrix, MatrixCache
from munjang.library.store import NearestRows, Progress, Scored, Store
from munjang.library.where import Condition
from munjang.types import Ints, Vectors


class VectorSearch:
    """Finds nearest rows in the commit that the caller's snapshot sees."""

    def __init__(self, store: Store, folder: Path | None, tuning: Tuning) -> None:
        self._store, self._folder, self._tuning = store, folder, tuning
        self._cache = MatrixCache(store, folder, tuning)
        self._lock = threading.Lock()
        self._lists: IvfIndex | None = None
        self._looked = False

    def nearest(self, queries_ND: Vectors, k: int, *, where: Condition | None, exact: bool | None) -> list[list[Scored]]:
        """Return each query's k nearest rows, best first; `queries_ND` have unit length."""
        if isinstance(self._store, NearestRows):
            return [self._store.nearest(query_D, k, where=where, exact=bool(exact)) for query_D in queries_ND]
        matrix = self._cache.current()
        among_P = None if where is None else matrix.positions(self._store.rows(where))
        count = len(matrix) if among_P is None else len(among_P)
        if not count:
            return [[] for _ in queries_ND]
        lists = self._fitting_lists(matrix, count, exact)
        if lists is not None:
            return [_join_scores(scores, rows) for scores, rows in lists.search(queries_ND, k, among_P=among_P)]
        scores_NK, rows_NK = matrix.search(queries_ND, k, among_P=among_P)
        return [_join_scores(scores, rows) for scores, rows in zip(scores_NK, rows_NK, strict=True)]

    def prepare(
        self, method: IndexMethod | None, precision: IndexPrecision | None, *, patience: float, progress: Progress | None = None
    ) -> str:
        """Bring the caches up to date, and build lists if there are enough passages for them; say what there is now.

        `method`, `precision` and `progress`, which is told of passages, are for a store with an index of its own.
        """
        if isinstance(self._store, NearestRows):
            return self._store.prepare(method=method, precision=precision, recall=self._tuning.recall, patience=patience, progress=progress)
        if method is not None or precision is not None:
            fact = f"{self._store.name}: is a file, whose index is inverted lists; a method and a precision are for PostgreSQL"
            raise UsageError(f"{fact}\n  leave them out")
        with self._store.snapshot():
            matrix = self._cache.current()
        if len(matrix) < self._tuning.approximate_from:
            return "exact"
        self._lists_of(matrix, build=True)
        return "approximate"

    def forget(self) -> None:
        """Let go of memory and mapped files."""
        self._cache.forget()
        with self._lock:
            self._lists, self._looked = None, False

    def _fitting_lists(self, matrix: Matrix, count: int, exact: bool | None) -> IvfIndex | None:
        few = count < self._tuning.exact_filter_part * len(matrix)
        if exact or few or (exact is None and len(matrix) < self._tuning.approximate_from):
            return None
        return self._lists_of(matrix, build=exact is False)

    def _lists_of(self, matrix: Matrix, *, build: bool) -> IvfIndex | None:
        """Return lists that are not too old for the matrix: those at hand, those on disk, or if wanted new ones."""
        with self._lock:
            self._fit(matrix)
            if self._lists is not None and not self._lists.stale(self._tuning.stale_part):
                return self._lists
            if not build:
                return None
            lists = build_lists(matrix, self._tuning)
            if self._folder is not None:
                save_lists(self._folder, self._belongs_to(matrix), lists)
            self._lists = fit_lists(lists, matrix)
            return self._lists

    def _fit(self, matrix: Matrix) -> None:
        """Lay the lists at hand, or those on disk, beside this matrix; those of another dimension go."""
        if self._lists is None and not self._looked and self._folder is not None:
            self._looked = True
            found = load_lists(self._folder, self._belongs_to(matrix))
            self._lists = None if found is None else fit_lists(found, matrix)
        elif self._lists is not None and self._lists.matrix is not matrix:
            same = self._lists.lists.index.d == matrix.base_MD.shape[1]
            self._lists = fit_lists(self._lists.lists, matrix) if same else None

    def _belongs_to(self, matrix: Matrix) -> dict[str, str | int]:
        return {"what": "lists", "uuid": self._store.uuid, "dimension": matrix.base_MD.shape[1], "recall": str(self._tuning.recall)}


def _join_scores(scores: Vectors, rows: Ints) -> list[Scored]:
    return list(map(Scored, rows.tolist(), np.minimum(scores, 1.0).tolist()))
