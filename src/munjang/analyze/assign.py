"""A matrix of scores → who goes with whom, each at most once.

`assign` finds the assignment with the largest sum (shortest augmenting paths after Jonker and Volgenant: exact, O(n²m) at worst).
`assign_greedily` takes the best pair that is left, again and again, from a list of candidates: for collections whose matrix is too large.

Shapes: N rows, M columns, N ≤ M inside; P candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import UsageError
from munjang.types import Floats, Ints

Doubles = NDArray[np.float64]
_FREE = -1


def assign(scores: ArrayLike) -> tuple[Ints, Ints]:
    """Return rows (ascending) and columns of the assignment with the largest sum of scores; the smaller side is assigned in full.

    >>> rows, columns = assign([[1.0, 0.9], [0.9, 0.0]])
    >>> columns.tolist()
    [1, 0]
    """
    scores_NM = np.asarray(scores, dtype=np.float64)
    if scores_NM.ndim != 2 or not np.isfinite(scores_NM).all():
        raise UsageError(f"scores: found shape {scores_NM.shape}; expected finite numbers of shape (n, m)")
    if not scores_NM.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if scores_NM.shape[0] > scores_NM.shape[1]:
        columns, rows = assign(scores_NM.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    return np.arange(len(scores_NM)), _Paths(scores_NM.max() - scores_NM).solved()


def assign_greedily(rows_P: Ints, columns_P: Ints, scores_P: Floats) -> Ints:
    """Return which candidates are taken, best first; equal scores by row, then by column.

    >>> assign_greedily(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.8, 0.9, 0.1])).tolist()
    [1]
    """
    order = np.lexsort((columns_P, rows_P, -scores_P))
    used_rows: set[int] = set()
    used_columns: set[int] = set()
    taken = []
    for place, row, column in zip(order.tolist(), rows_P[order].tolist(), columns_P[order].tolist(), strict=True):
        if row not in used_rows and column not in used_columns:
            used_rows.add(row)
            used_columns.add(column)
            taken.append(place)
    return np.array(taken, dtype=np.int64)


class _Paths:
    """Costs, prices that keep every reduced cost at or above zero, and pairs whose reduced cost is zero."""

    def __init__(self, cost_NM: Doubles) -> None:
        self.cost_NM = cost_NM
        self.row_price_N = cost_NM.min(axis=1)
        self.column_price_M = np.zeros(cost_NM.shape[1])
        self.column_of_N = np.full(cost_NM.shape[0], _FREE, dtype=np.int64)
        self.row_of_M = np.full(cost_NM.shape[1], _FREE, dtype=np.int64)

    def solved(self) -> Ints:
        """Return each row's column."""
        for row, column in enumerate(self.cost_NM.argmin(axis=1).tolist()):
            if self.row_of_M[column] == _FREE:  # a row's cheapest column is free: no path needed
                self.row_of_M[column], self.column_of_N[row] = row, column
        for row in np.flatnonzero(self.column_of_N == _FREE).tolist():
            self._augment(row)
        return self.column_of_N

    def _augment(self, start: int) -> None:
        """Give a free row a column along the cheapest path, on which others may have to move."""
        m = len(self.row_of_M)
        distance_M, came_from_M = np.full(m, np.inf), np.full(m, start, dtype=np.int64)
        open_M = np.ones(m, dtype=bool)
        row, reached = start, 0.0
        visited: list[tuple[int, float]] = []  # columns in order, with their distances
        while True:
            through_M = reached + self.cost_NM[row] - self.row_price_N[row] - self.column_price_M
            shorter_M = open_M & (through_M < distance_M)
            distance_M[shorter_M], came_from_M[shorter_M] = through_M[shorter_M], row
            column = int(np.where(open_M, distance_M, np.inf).argmin())
            reached = float(distance_M[column])
            if self.row_of_M[column] == _FREE:
                break
            open_M[column] = False
            visited.append((column, reached))
            row = int(self.row_of_M[column])
        self.row_price_N[start] += reached
        for seen, distance in visited:
            self.row_price_N[self.row_of_M[seen]] += reached - distance
            self.column_price_M[seen] -= reached - distance
        self._flip(start, column, came_from_M)

    def _flip(self, start: int, column: int, came_from_M: Ints) -> None:
        while True:
            row = int(came_from_M[column])
            self.row_of_M[column] = row
            self.column_of_N[row], column = column, int(self.column_of_N[row])
            if row == start:
                return
