"""Rows → every pair of them whose cosine is at least a threshold, exactly, each pair once.

The square of all pairs is walked in groups of rows × blocks of rows, above its diagonal only. A product of bytes with a proven bound
(`coarse`) drops what cannot reach the threshold, and what is left is scored in float32; a block in which very many are left, a small
collection, or a processor without an exact integer product is scored in float32 straight away. Pairs are handed to a visitor block by
block, so nothing grows with their number; what is kept is the visitor's affair.

Shapes: N rows of a group, M rows of a block, D dimensions, P pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from munjang.errors import UsageError
from munjang.limits import usable_cores
from munjang.types import Ints, Vectors
from munjang.vectors.coarse import ROWS, CoarseRows, is_available, make_product, round_queries, round_rows

Visit: TypeAlias = Callable[[Ints, Ints, Vectors], None]
"""Called with rows a, rows b > a and their cosines; never by two threads at once, and in no particular order."""

SMALLEST = 8_192
"""Rows from which the first pass pays."""

_GROUP = 512  # rows whose bytes and one block's products fit in the processor's cache
_CROWDED = 1 / 32  # a block of which more than this survives is scored in float32
_PAIRS = 512  # survivors that are scored again together


def visit_pairs_within(unit_ND: Vectors, threshold: float, visit: Visit, *, threads: int | None = None) -> None:
    """Hand every pair of unit rows with a cosine of at least the threshold to `visit`.

    >>> visit_pairs_within(np.eye(2, dtype=np.float32)[[0, 1, 0]], 0.9, lambda a, b, score: print(a, b, score))
    [0] [2] [1.]
    """
    if not np.isfinite(threshold):
        raise UsageError(f"threshold is {threshold}, expected a number between -1 and 1")
    first_pass = len(unit_ND) >= SMALLEST and unit_ND.shape[1] and is_available()
    walk = _Walk(unit_ND, threshold, visit, round_rows(unit_ND, "dot") if first_pass else None)
    starts = range(0, len(unit_ND), _GROUP)
    threads = threads or usable_cores()
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(walk.group, starts))
    else:
        for start in starts:
            walk.group(start)


class _Walk:
    """The way through the square, shared by the threads."""

    def __init__(self, unit_ND: Vectors, threshold: float, visit: Visit, rows: CoarseRows | None) -> None:
        self.unit_ND, self.floor, self.rows = unit_ND, np.float32(threshold), rows
        self._visit, self._lock = visit, threading.Lock()

    def group(self, start: int) -> None:
        """Compare a group of rows with itself and all rows behind it."""
        group_ND = self.unit_ND[start : start + _GROUP]
        first = start // ROWS * ROWS
        if self.rows is None:
            for at in range(first, len(self.unit_ND), ROWS):
                self._in_full(group_ND, start, at)
            return
        coarse = round_queries(group_ND, self.rows.steps)
        product = make_product(coarse.bytes_DN)
        floor_N = np.full(len(group_ND), self.floor)
        for at in range(first, len(self.unit_ND), ROWS):
            products_MN = product(self.rows.bytes_MD[at : at + ROWS])
            survivors = np.flatnonzero(products_MN > coarse.least(floor_N, self.rows, at // ROWS))
            if len(survivors) > _CROWDED * products_MN.size:
                self._in_full(group_ND, start, at)
                continue
            b_P, a_P = np.divmod(survivors, len(group_ND))
            most_P = coarse.at_most(products_MN.reshape(-1)[survivors], a_P, b_P + at, self.rows)
            kept = most_P >= self.floor
            self._score(a_P[kept] + start, b_P[kept] + at)

    def _in_full(self, group_ND: Vectors, start: int, at: int) -> None:
        scores_NM = group_ND @ self.unit_ND[at : at + ROWS].T
        a_P, b_P = np.nonzero(scores_NM >= self.floor)
        self._hand_over(a_P + start, b_P + at, scores_NM[a_P, b_P])

    def _score(self, a_P: Ints, b_P: Ints) -> None:
        above = b_P > a_P
        a_P, b_P = a_P[above], b_P[above]
        scores_P = np.empty(len(a_P), dtype=np.float32)
        for at in range(0, len(a_P), _PAIRS):
            part = slice(at, at + _PAIRS)
            np.einsum("pd,pd->p", self.unit_ND[a_P[part]], self.unit_ND[b_P[part]], out=scores_P[part])
        self._hand_over(a_P, b_P, scores_P)

    def _hand_over(self, a_P: Ints, b_P: Ints, scores_P: Vectors) -> None:
        kept = (b_P > a_P) & (scores_P >= self.floor)
        if kept.any():
            with self._lock:
                self._visit(a_P[kept], b_P[kept], scores_P[kept])
