"""A corpus, prepared once → each query's k best rows, exactly, at a third of the price of a float32 product.

A first pass multiplies bytes (`int8_product`) and drops the rows that cannot be among the best by a proven bound (`coarse`); what is left,
a few in ten thousand, is scored again in float32. So the answer is that of `top_k`, up to the last digit of float32. Where the bound
decides nothing, because very many rows are nearly alike, a block is scored in float32 straight away. A small corpus, or a processor without
an exact integer product, gets no first pass at all.

The index holds one byte per number besides the corpus, which may be on disk (`numpy.memmap`): only rows that survive are read.

Shapes: N queries, M corpus rows, D dimensions, P pairs of a query and a row, K answers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import UsageError
from munjang.limits import usable_cores
from munjang.types import Ints, Metric, Vectors
from munjang.vectors.best import LARGEST_INDEX, indices_of, scores_of
from munjang.vectors.coarse import coarse_rows
from munjang.vectors.int8_product import available
from munjang.vectors.sifting import Walk
from munjang.vectors.similarity import as_rows, check_metric, check_same_dimension, prepared
from munjang.vectors.topk import top_k

SMALLEST = 4_096
"""Rows from which the first pass pays."""

_QUERIES = 512  # queries that go through the corpus together; their bytes and one block's products fit in the processor's cache


class ExactIndex:
    """Vectors ready to be searched exactly by cosine or dot product.

    >>> index = ExactIndex(np.array([[0, 1], [2, 0], [1, 0]]))
    >>> scores, indices = index.search([1, 0], k=2)
    >>> scores.tolist(), indices.tolist()
    ([[1.0, 1.0]], [[1, 2]])
    """

    def __init__(self, corpus: NDArray[Any], *, metric: Metric = "cosine") -> None:
        check_metric(metric)
        found = np.atleast_2d(np.asanyarray(corpus))
        if metric not in ("cosine", "dot"):
            raise UsageError(f"metric {metric}: an exact index knows cosine and dot\n  use top_k for the others")
        if found.ndim != 2 or found.dtype.kind not in "fiu" or len(found) > LARGEST_INDEX:
            raise UsageError(
                f"corpus: found shape {found.shape} of {found.dtype}; expected numbers of shape (m, d), at most {LARGEST_INDEX:,} rows"
            )
        self.metric: Metric = metric
        self._corpus = found
        self._rows = coarse_rows(found, metric) if len(found) >= SMALLEST and found.shape[1] and available() else None

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._corpus)

    def search(self, queries: ArrayLike, *, k: int, threads: int | None = None) -> tuple[Vectors, Ints]:
        """Return the k best rows of each query: scores (n, k) float32 and indices (n, k) int64, best first, lower index first on ties."""
        queries_ND = as_rows(queries, "queries")
        check_same_dimension(queries_ND, self._corpus, "queries", "corpus")
        if self._rows is None or not len(queries_ND) or k < 1 or 4 * k > len(self):
            return top_k(queries_ND, self._corpus, k=k, metric=self.metric)
        queries_ND = prepared(queries_ND, self.metric)
        threads = threads or usable_cores()
        group = min(_QUERIES, max(64, -(-len(queries_ND) // threads)))
        walks = [Walk(self._corpus, self._rows, queries_ND[at : at + group], self.metric) for at in range(0, len(queries_ND), group)]
        if threads > 1 and len(walks) > 1:
            with ThreadPoolExecutor(threads) as pool:
                keys_NK = np.concatenate(list(pool.map(lambda walk: walk.best(k), walks)))
        else:
            keys_NK = np.concatenate([walk.best(k) for walk in walks])
        return scores_of(keys_NK), indices_of(keys_NK)
