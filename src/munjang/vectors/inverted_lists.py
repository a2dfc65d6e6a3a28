"""Unit vectors → lists around centres, such that near vectors meet in one list although each is dealt by itself.

Every row has one list of its own, that of its nearest centre, and visits the lists whose border it is near: two rows whose cosine is at
least a threshold differ by a vector no longer than r = √(2 − 2·threshold), and if they lie on two sides of a border, one of them is within
r/2 of it. With `reach` 0.5 no pair is missed. But the difference of two rows points straight across one border about never: with the
default nearly as few are missed (docs/pairs.md) and far fewer rows are compared twice.

Centres are a function of the sample they are made of, and lists one of row and centres: the order of rows changes neither.

Shapes: N rows, D dimensions, L lists, V visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from munjang.types import Ints, Vectors

EXACT, REACH = 0.5, 0.15
"""How far from a border rows still visit, as a part of r: so far that no pair can be missed, and so far that hardly any is."""
ALONE = 8_192
"""Rows up to which one list is best: all pairs are compared."""
_ROWS = 2_048


def count_lists(rows: int) -> int:
    """Return how many lists so many rows are dealt into: choosing a list costs as much then as comparing the rows in one.

    >>> count_lists(8_000), count_lists(5_000_000)
    (1, 3354)
    """
    return 1 if rows <= ALONE else round(1.5 * rows**0.5)


def measure_margin(threshold: float, reach: float = REACH) -> float:
    """Return how near to a border rows visit the list behind it, for pairs of at least this cosine."""
    return float(reach * np.sqrt(max(0.0, 2 - 2 * threshold)))


class Placed(NamedTuple):
    """The own list of each row, and the visits: a row's place and a list."""

    own_N: Ints
    row_V: Ints
    list_V: Ints


@dataclass(frozen=True, eq=False)
class InvertedLists:
    """Centres, and how near to a border a row visits the list behind it."""

    centre_LD: Vectors
    margin: float

    @cached_property
    def _apart_LL(self) -> Vectors:
        """How far apart centres are."""
        square_LL: Vectors = 2 - 2 * (self.centre_LD @ self.centre_LD.T)
        return np.sqrt(np.maximum(square_LL, 0))

    @cached_property
    def _furthest_L(self) -> Vectors:
        return np.asarray(self._apart_LL.max(axis=1))

    def place(self, rows: int, unit: Callable[[slice], Vectors]) -> Placed:
        """Return where so many rows belong and what they visit; `unit` gives some of them as unit vectors.

        A row of zeros visits nothing, since it is near to nothing.
        """
        parts = [self._place_block(unit(slice(start, start + _ROWS)), start) for start in range(0, rows, _ROWS)]
        if not parts:
            return Placed(*(np.empty(0, dtype=np.int64) for _ in range(3)))
        return Placed(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _place_block(self, unit_ND: Vectors, start: int) -> Placed:
        scores_NL = unit_ND @ self.centre_LD.T
        own_N = scores_NL.argmax(axis=1)
        best_N = scores_NL[np.arange(len(own_N)), own_N]
        cut_N = np.where(unit_ND.any(axis=1), best_N - np.float32(self.margin) * self._furthest_L[own_N], np.inf).astype(np.float32)
        row_V, list_V = np.nonzero(scores_NL >= cut_N[:, None])
        gap_V = best_N[row_V] - scores_NL[row_V, list_V]
        near_V = (gap_V <= self.margin * self._apart_LL[own_N[row_V], list_V]) & (list_V != own_N[row_V])
        return Placed(own_N, row_V[near_V] + start, list_V[near_V])
