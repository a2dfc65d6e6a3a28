"""An approximate index (HNSW, from FAISS) over a matrix: rows that are probably among the nearest, in a hundredth of the time.

The graph holds vectors in one byte a number, and only proposes rows; the matrix scores them in float32, so scores are those of exact
search. It may be older than the matrix: deleted rows are passed over, and rows that it does not know are scored one and all. It is kept
in a cache file and rebuilt when that is missing, damaged, or too much out of date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.errors import MissingExtra
from munjang.library.cache_file import read_cache, write_cache
from munjang.library.matrix import Matrix
from munjang.library.tuning import Tuning
from munjang.types import Ints, Vectors

FILE = "graph.cache"
_ADDED_AT_ONCE = 16_384
_CANDIDATES = 4  # candidates for each answer that is wanted


@dataclass(frozen=True, eq=False)
class Graph:
    """A FAISS index whose i-th vector is row `rows_G[i]`."""

    index: Any
    rows_G: Ints
    tuning: Tuning


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """A graph beside a matrix that may be younger: what of the one stands where in the other."""

    graph: Graph
    matrix: Matrix
    position_G: Ints
    """The position of each of the graph's rows in the matrix; −1 for a row that is gone."""
    fresh_P: Ints
    """Positions of rows that the graph does not know."""

    def stale(self) -> bool:
        """Say whether too much has changed since the graph was built."""
        changed = len(self.fresh_P) + int((self.position_G < 0).sum())
        return changed > self.graph.tuning.stale_part * max(1, len(self.matrix))

    def search(self, queries_ND: Vectors, k: int, *, among_P: Ints | None = None) -> list[tuple[Vectors, Ints]]:
        """Return for each query up to k scores and row numbers, best first, probably the best there are."""
        fresh_P = self.fresh_P if among_P is None else np.intersect1d(self.fresh_P, among_P, assume_unique=True)
        proposed = self._proposed(queries_ND, k, self._usable(among_P))
        answers = []
        for query_D, labels in zip(queries_ND, proposed, strict=True):
            found_P = self.position_G[labels[labels >= 0]]
            candidates_P = np.sort(np.concatenate([found_P[found_P >= 0], fresh_P]))
            scores = self.matrix.take(candidates_P) @ query_D
            best = np.lexsort((candidates_P, -scores))[:k]
            answers.append((scores[best], self.matrix.rows_M[candidates_P[best]]))
        return answers

    def _usable(self, among_P: Ints | None) -> NDArray[np.bool_] | None:
        """Return which of the graph's rows may be proposed; None when all may."""
        if among_P is None:
            return None if (self.position_G >= 0).all() else self.position_G >= 0
        allowed = np.zeros(len(self.matrix.rows_M) + 1, dtype=np.bool_)  # the last place is that of position −1
        allowed[among_P] = True
        return allowed[self.position_G]

    def _proposed(self, queries_ND: Vectors, k: int, usable: NDArray[np.bool_] | None) -> Ints:
        faiss = _faiss()
        width = max(self.graph.tuning.graph_width_searching, 2 * k * _CANDIDATES)
        parameters = faiss.SearchParametersHNSW(efSearch=width)
        if usable is not None:
            bits = np.packbits(usable, bitorder="little")
            parameters = faiss.SearchParametersHNSW(efSearch=width, sel=faiss.IDSelectorBitmap(bits))
        wanted = min(k * _CANDIDATES, len(self.graph.rows_G))
        labels: Ints = self.graph.index.search(queries_ND, wanted, params=parameters)[1]
        return labels


def fit_graph(graph: Graph, matrix: Matrix) -> FittedGraph:
    """Lay a graph beside a matrix."""
    known_P = matrix.positions(graph.rows_G)
    position_G = np.full(len(graph.rows_G), -1, dtype=np.int64)
    position_G[np.isin(graph.rows_G, matrix.rows_M[known_P], assume_unique=True)] = known_P
    alive_P = np.arange(len(matrix.rows_M)) if matrix.alive_P is None else matrix.alive_P
    return FittedGraph(graph, matrix, position_G, np.setdiff1d(alive_P, known_P, assume_unique=True))


def build_graph(matrix: Matrix, tuning: Tuning) -> Graph:
    """Build the graph of all rows that are alive."""
    faiss = _faiss()
    positions_P = np.arange(len(matrix.rows_M)) if matrix.alive_P is None else matrix.alive_P
    dimension = matrix.base_MD.shape[1]
    index = faiss.IndexHNSWSQ(dimension, faiss.ScalarQuantizer.QT_8bit, tuning.graph_links, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = tuning.graph_width_building
    sample = positions_P[:: max(1, len(positions_P) // 50_000)]
    index.train(matrix.take(sample))
    for start in range(0, len(positions_P), _ADDED_AT_ONCE):
        index.add(np.ascontiguousarray(matrix.take(positions_P[start : start + _ADDED_AT_ONCE])))
    return Graph(index, matrix.rows_M[positions_P], tuning)


def load_graph(folder: Path, belongs_to: Mapping[str, str | int], tuning: Tuning) -> Graph | None:
    """Return the graph from its cache file, or None."""
    found = read_cache(folder / FILE, belongs_to)
    if found is None:
        return None
    faiss = _faiss()
    return Graph(faiss.deserialize_index(found["index"]), np.array(found["rows"]), tuning)


def save_graph(folder: Path, belongs_to: Mapping[str, str | int], graph: Graph) -> None:
    """Write the graph's cache file, if the disk takes it."""
    try:
        write_cache(folder / FILE, belongs_to, {"index": [_faiss().serialize_index(graph.index)], "rows": [graph.rows_G]})
    except OSError:
        pass


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("approximate search", "search") from None
    return faiss
