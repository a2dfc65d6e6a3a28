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

    def search(self, matrix: Matrix, queries_ND: Vectors, k: int, *, among_P: Ints | None = None) -> list[tuple[Vectors, Ints]]:
        """Return for each query up to k scores and row numbers, best first, probably the best there are."""
        allowed_P = among_P if among_P is not None else matrix.alive_P
        known_P = matrix.positions(self.rows_G)
        fresh_P = np.setdiff1d(np.arange(len(matrix.rows_M)) if allowed_P is None else allowed_P, known_P, assume_unique=True)
        usable = None if allowed_P is None and len(known_P) == len(self.rows_G) else _mask(self.rows_G, matrix, allowed_P)
        proposed = self._proposed(queries_ND, k, usable)
        answers = []
        for query_D, labels in zip(queries_ND, proposed, strict=True):
            found_P = matrix.positions(np.sort(self.rows_G[labels[labels >= 0]]))
            candidates_P = np.union1d(found_P, fresh_P)
            scores_1K, rows_1K = matrix.search(query_D[None], k, among_P=candidates_P)
            answers.append((scores_1K[0], rows_1K[0]))
        return answers

    def stale(self, matrix: Matrix) -> bool:
        """Say whether too much has changed since the graph was built."""
        known = len(matrix.positions(self.rows_G))
        return len(matrix) - known + len(self.rows_G) - known > self.tuning.stale_part * max(1, len(matrix))

    def _proposed(self, queries_ND: Vectors, k: int, usable: Any) -> Ints:
        faiss = _faiss()
        width = max(self.tuning.graph_width_searching, 2 * k * _CANDIDATES)
        parameters = faiss.SearchParametersHNSW(efSearch=width)
        if usable is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(usable, bitorder="little"))
            parameters = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
        labels: Ints = self.index.search(queries_ND, min(k * _CANDIDATES, len(self.rows_G)), params=parameters)[1]
        return labels


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


def _mask(rows_G: Ints, matrix: Matrix, allowed_P: Ints | None) -> Any:
    allowed = matrix.rows_M if allowed_P is None else matrix.rows_M[allowed_P]
    return np.isin(rows_G, allowed, assume_unique=True)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("approximate search", "search") from None
    return faiss
