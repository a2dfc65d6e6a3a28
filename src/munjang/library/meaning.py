"""Query vectors → the rows whose vectors are nearest, by the means that fits: exact, the graph, or the store's own index.

Below `Tuning.approximate_from` passages everything is exact. From there on a graph is used if there is one that is not too old; it is
built by `prepare` (which `munjang add` calls) or when approximate search is asked for by name, never as a surprise inside a search.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from munjang.library.graph import FittedGraph, build_graph, fit_graph, load_graph, save_graph
from munjang.library.matrix import Matrix
from munjang.library.matrix_cache import MatrixCache
from munjang.library.store import Scored, Store, VectorSearch
from munjang.library.tuning import Tuning
from munjang.library.where import Condition
from munjang.types import Ints, Vectors


class Meaning:
    """Finds nearest rows in the commit that the caller's snapshot sees."""

    def __init__(self, store: Store, folder: Path | None, tuning: Tuning) -> None:
        self._store, self._folder, self._tuning = store, folder, tuning
        self._cache = MatrixCache(store, folder, tuning)
        self._lock = threading.Lock()
        self._graph: FittedGraph | None = None
        self._looked = False

    def nearest(self, queries_ND: Vectors, k: int, *, where: Condition | None, exact: bool | None) -> list[list[Scored]]:
        """Return each query's k nearest rows, best first; `queries_ND` have unit length."""
        if isinstance(self._store, VectorSearch):
            return [self._store.nearest(query_D, k, where=where, exact=bool(exact)) for query_D in queries_ND]
        matrix = self._cache.current()
        among_P = None if where is None else matrix.positions(self._store.rows(where))
        count = len(matrix) if among_P is None else len(among_P)
        if not count:
            return [[] for _ in queries_ND]
        graph = self._fitting_graph(matrix, count, exact)
        if graph is not None:
            return [_scored(scores, rows) for scores, rows in graph.search(queries_ND, k, among_P=among_P)]
        scores_NK, rows_NK = matrix.search(queries_ND, k, among_P=among_P)
        return [_scored(scores, rows) for scores, rows in zip(scores_NK, rows_NK, strict=True)]

    def prepare(self) -> str:
        """Bring the caches up to date, and build the graph if there are enough passages for one; say what there is now."""
        if isinstance(self._store, VectorSearch):
            return "the store's own index"
        with self._store.snapshot():
            matrix = self._cache.current()
        if len(matrix) < self._tuning.approximate_from:
            return "exact"
        self._graph_of(matrix, build=True)
        return "graph"

    def forget(self) -> None:
        """Let go of memory and mapped files."""
        self._cache.forget()
        with self._lock:
            self._graph, self._looked = None, False

    def _fitting_graph(self, matrix: Matrix, count: int, exact: bool | None) -> FittedGraph | None:
        few = count < self._tuning.graph_filter_part * len(matrix)
        if exact or few or (exact is None and len(matrix) < self._tuning.approximate_from):
            return None
        return self._graph_of(matrix, build=exact is False)

    def _graph_of(self, matrix: Matrix, *, build: bool) -> FittedGraph | None:
        """Return a graph that is not too old for the matrix: the one at hand, the one on disk, or if wanted a new one."""
        with self._lock:
            self._fit(matrix)
            if self._graph is not None and not self._graph.stale():
                return self._graph
            if not build:
                return None
            graph = build_graph(matrix, self._tuning)
            if self._folder is not None:
                save_graph(self._folder, self._belongs_to(matrix), graph)
            self._graph = fit_graph(graph, matrix)
            return self._graph

    def _fit(self, matrix: Matrix) -> None:
        """Lay the graph at hand, or the one on disk, beside this matrix; one of another dimension goes."""
        if self._graph is None and not self._looked and self._folder is not None:
            self._looked = True
            found = load_graph(self._folder, self._belongs_to(matrix), self._tuning)
            self._graph = None if found is None else fit_graph(found, matrix)
        elif self._graph is not None and self._graph.matrix is not matrix:
            same = self._graph.graph.index.d == matrix.base_MD.shape[1]
            self._graph = fit_graph(self._graph.graph, matrix) if same else None

    def _belongs_to(self, matrix: Matrix) -> dict[str, str | int]:
        return {"what": "graph", "uuid": self._store.uuid, "dimension": matrix.base_MD.shape[1], "links": self._tuning.graph_links}


def _scored(scores: Vectors, rows: Ints) -> list[Scored]:
    return [Scored(int(row), float(score)) for row, score in zip(rows, np.minimum(scores, 1.0), strict=True)]
