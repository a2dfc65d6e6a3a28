"""Rows in inverted lists on disk → every pair of them that meets in a list and whose cosine is at least a threshold, a list at a time.

Exact inside a list. Memory holds one list for each thread, and of each row at most `EARLIER` pairs with rows before it: those with the
earliest. Rows that have more are named, so that a caller can look again when it knows which rows no longer count.

Shapes: E entries of a list, D dimensions, P pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.types import Ints, Vectors
from munjang.vectors.list_runs import ListRuns
from munjang.vectors.similarity import prepare_rows

EARLIER = 8
"""Pairs that are kept of a row."""
_ROWS, _COLUMNS = 1_024, 8_192  # scores held at once

PAIR = np.dtype([("later", "<u4"), ("earlier", "<u4"), ("score", "<f4")])
"""Two rows, the one with the larger number first, and their cosine."""

Wanted = Callable[[Ints], NDArray[np.bool_]]
"""Rows → which of them."""


@dataclass(frozen=True, eq=False)
class ListPairs:
    """The pairs of a list, by later and earlier row, and the rows that have more pairs than these."""

    pairs_P: NDArray[Any]
    cut: Ints


def find_list_pairs(
    runs: ListRuns, number: int, threshold: float, to_floats: Callable[[NDArray[Any]], Vectors], *, counts: Wanted, asks: Wanted
) -> ListPairs:
    """Return the pairs of a list's own rows with one another and with its visitors.

    Only rows that count are compared, and only pairs whose later row asks are kept.
    """
    found = runs.read(number)
    kept = counts(found.row_E)
    own = int(np.count_nonzero(kept[: found.own]))
    row_E, raw_ED = found.row_E[kept], found.vectors_ED[kept]
    parts: list[NDArray[Any]] = []
    if own == 0 or len(row_E) < 2:
        return ListPairs(np.empty(0, dtype=PAIR), np.empty(0, dtype=np.int64))
    unit_ED = prepare_rows(to_floats(raw_ED), "cosine") if len(row_E) <= _COLUMNS else None

    def unit(rows: slice) -> Vectors:
        return prepare_rows(to_floats(raw_ED[rows]), "cosine") if unit_ED is None else unit_ED[rows]

    for left in [*range(0, own, _COLUMNS), *range(own, len(row_E), _COLUMNS)]:
        right = min(left + _COLUMNS, own if left < own else len(row_E))
        unit_MD = unit(slice(left, right))
        for top in range(left if left < own else 0, own, _ROWS):
            rows = slice(top, min(top + _ROWS, own))
            scores_NM = unit(rows) @ unit_MD.T
            parts.append(_list_pairs(scores_NM, row_E, top, left, own, np.float32(threshold), asks))
    return _keep_earliest(np.concatenate(parts))


def _list_pairs(scores_NM: Vectors, row_E: Ints, top: int, left: int, own: int, floor: np.float32, asks: Wanted) -> NDArray[Any]:
    """Return the pairs of a block of scores, whose first is that of entries `top` and `left`."""
    a_P, b_P = np.nonzero(scores_NM >= floor)
    score_P = scores_NM[a_P, b_P]
    a_P, b_P = a_P + top, b_P + left
    once = (b_P < a_P) | (b_P >= own)  # own rows meet twice in the square
    a_P, b_P, score_P = row_E[a_P[once]], row_E[b_P[once]], score_P[once]
    pairs = np.empty(len(a_P), dtype=PAIR)
    pairs["later"], pairs["earlier"], pairs["score"] = np.maximum(a_P, b_P), np.minimum(a_P, b_P), score_P
    return _first_of_each(pairs[asks(pairs["later"].astype(np.int64))], EARLIER + 1)


def _keep_earliest(pairs_P: NDArray[Any]) -> ListPairs:
    """Keep the earliest pairs of each row."""
    more = _first_of_each(pairs_P, EARLIER + 1)
    kept = _first_of_each(more, EARLIER)
    cut = np.setdiff1d(more["later"][_rank(more) == EARLIER], [])
    return ListPairs(kept, cut.astype(np.int64))


def _first_of_each(pairs_P: NDArray[Any], count: int) -> NDArray[Any]:
    ordered = pairs_P[np.lexsort((pairs_P["earlier"], pairs_P["later"]))]
    return ordered[_rank(ordered) < count]


def _rank(ordered_P: NDArray[Any]) -> Ints:
    """Return which of its row's pairs each is, from 0."""
    later_P = ordered_P["later"]
    return np.arange(len(later_P)) - np.searchsorted(later_P, later_P)
