"""All vectors of one commit as rows of unit length, and each query's best among them, exactly.

The rows stand in two arrays that are never joined: `base`, usually mapped from a cache file, and `tail`, what was added since. Rows of
deleted documents may still stand there; `alive_P` says which positions count.

Shapes: N queries, M positions (base, then tail), D dimensions, P positions that take part, K answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from munjang.types import Ints, Vectors
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.topk import select_top

MANY_QUERIES = 32
"""Queries at once from which preparing an exact index pays."""

SCORED_ROWS = 1024
"""Rows that are scored one by one together; they fit in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """The vectors of one commit. Row numbers ascend."""

    generation: int
    base_rows: Ints
    base_MD: Vectors
    tail_rows: Ints
    tail_MD: Vectors
    alive_P: Ints | None
    """Positions that are not deleted, ascending; None when all are alive."""

    @cached_property
    def rows_M(self) -> Ints:
        """Every position's row number."""
        return np.concatenate([self.base_rows, self.tail_rows])

    def __len__(self) -> int:
        """Return how many rows are alive."""
        return len(self.rows_M) if self.alive_P is None else len(self.alive_P)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions of those of these ascending rows that are alive."""
        at = np.searchsorted(self.rows_M, rows)
        inside = at < len(self.rows_M)
        at, rows = at[inside], rows[inside]
        found: Ints = at[self.rows_M[at] == rows]
        return found if self.alive_P is None else found[np.isin(found, self.alive_P, assume_unique=True)]

    def search(self, queries_ND: Vectors, k: int, *, among_P: Ints | None = None) -> tuple[Vectors, Ints]:
        """Return the k best scores (N, K) and row numbers (N, K), best first, the lower row first on ties."""
        positions_P = self.alive_P if among_P is None else among_P
        if positions_P is None and not len(self.tail_rows) and len(queries_ND) >= MANY_QUERIES:
            scores_NK, at_NK = self._index.search(queries_ND, k=k)
            return scores_NK, self.rows_M[at_NK]
        total = len(self.rows_M) if positions_P is None else len(positions_P)

        def fill(queries: slice, columns: slice, out: Vectors) -> None:
            part_MD = self._slice(columns) if positions_P is None else self.take(positions_P[columns])
            np.matmul(queries_ND[queries], part_MD.T, out=out)

        scores_NK, at_NK = select_top(fill, shape=(len(queries_ND), total), k=k)
        return scores_NK, self.rows_M[at_NK if positions_P is None else positions_P[at_NK]]

    def scores_at(self, queries_ND: Vectors, position_NW: Ints) -> Vectors:
        """Return the scores (N, W) of each query with the rows at its own positions; where a position is −1, those of the last row."""
        scores_NW = np.empty(position_NW.shape, dtype=np.float32)
        step = max(1, SCORED_ROWS // max(1, position_NW.shape[1]))
        for at in range(0, len(queries_ND), step):
            wanted_NW = position_NW[at : at + step]
            order = np.argsort(wanted_NW, axis=None)
            rows_ND = np.empty((wanted_NW.size, queries_ND.shape[1]), dtype=np.float32)
            rows_ND[order] = self.take(wanted_NW.reshape(-1)[order])
            rows_NWD = rows_ND.reshape(*wanted_NW.shape, -1)
            np.einsum("nwd,nd->nw", rows_NWD, queries_ND[at : at + step], out=scores_NW[at : at + step])
        return scores_NW

    def take(self, positions_P: Ints) -> Vectors:
        """Return the vectors at these ascending positions."""
        edge = len(self.base_rows)
        cut = int(np.searchsorted(positions_P, edge))
        if cut == len(positions_P):
            return np.asarray(self.base_MD[positions_P])
        if cut == 0:
            return np.asarray(self.tail_MD[positions_P - edge])
        return np.concatenate([self.base_MD[positions_P[:cut]], self.tail_MD[positions_P[cut:] - edge]])

    def _slice(self, columns: slice) -> Vectors:
        edge = len(self.base_rows)
        if columns.stop <= edge:
            return self.base_MD[columns]
        if columns.start >= edge:
            return self.tail_MD[columns.start - edge : columns.stop - edge]
        return np.concatenate([self.base_MD[columns.start :], self.tail_MD[: columns.stop - edge]])

    @cached_property
    def _index(self) -> ExactIndex:
        return ExactIndex(self.base_MD, metric="dot")


def unit(vectors_ND: Vectors) -> Vectors:
    """Return the rows scaled to length one; a row of zeros stays."""
    lengths_N1 = np.linalg.norm(vectors_ND.astype(np.float64), axis=-1, keepdims=True)
    return (vectors_ND / np.where(lengths_N1 > 0, lengths_N1, 1)).astype(np.float32)
