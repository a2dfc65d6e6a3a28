"""Two collections → for the rows of one their best counterparts in the other.

Many-to-one: every row on the left takes its best row on the right. One-to-one: every row is used at most once, and the sum of scores is the
largest there is (`assign`); beyond ASSIGNED_CELLS scores, candidates are taken best first instead, which `exact` says.

Scores are cosines, or margins: a pair's cosine divided by the average of both sides' cosines with their nearest neighbours. Where some rows
are close to everything, the margin finds translations that the cosine does not; a margin of 1 means "no closer than others", and 1.05 to
1.1 is a usual threshold.

Shapes: N rows on the left, M on the right, D dimensions, K neighbours, P candidate pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.numbers import contradict, read_numbers
from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.types import Floats, Ints, Vectors
from munjang.vectors.similarity import check_same_dimension, prepare_rows, similarity, to_rows
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr

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
    return np.arange(len(scores_NM)), _Paths(scores_NM.max() - scores_NM).solve()


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

    def solve(self) -> Ints:
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


ASSIGNED_CELLS = 4_000_000
"""Scores up to which the best assignment is sought; more are matched best first."""

CANDIDATES = 32
"""Nearest rows of each row, from both sides, that are matched best first."""

_SMALLEST_MEAN = np.float32(1e-6)  # neighbours that are no neighbours at all must not make a margin infinite


@dataclass(frozen=True)
class Match:
    """Row `left` of one collection goes with row `right` of the other."""

    left: int
    right: int
    score: float


@brief_repr
@dataclass(frozen=True)
class Matched(Table):
    """Who goes with whom."""

    columns: ClassVar[tuple[str, ...]] = ("left", "right", "score")

    matches: tuple[Match, ...]
    """By the left row."""
    left_alone: tuple[int, ...]
    right_alone: tuple[int, ...]
    exact: bool
    """Whether no other matching has a larger sum of scores."""

    def to_rows(self) -> list[Row]:
        """Return the matches, by the left row."""
        return [asdict(each) for each in self.matches]


def match(
    left: ArrayLike,
    right: ArrayLike,
    *,
    one_to_one: Annotated[bool, Option("Use each text at most once and maximise the total score.")] = False,
    margin: Annotated[
        bool, Option("Score a pair relative to its neighbours, as for translation mining; 1 is no closer than others.")
    ] = False,
    threshold: Annotated[float | None, Option("Minimum score of a match; `munjang calibrate` finds a suitable one.")] = None,
    neighbours: Annotated[int, Option("For margin: the neighbours that a pair is compared with.", min=1)] = 4,
    numbers: Annotated[bool, Option("Do not match texts whose numbers, units, model codes or variants (Pro, Mini) differ.")] = False,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Matched:
    """Return the best counterpart on the right for rows on the left.

    Pairs below the threshold are left out, and in a one-to-one matching no pair above it is given up for one below. `neighbours` are
    those whose average a margin is measured by. With `numbers`, rows whose numbers, units, model codes or variants contradict each other
    (`numbers_differ`) never go together, and each row takes the best of the others; that needs the `texts` of both sides.

    >>> match([[1, 0], [0, 1]], [[0, 1], [1, 0]]).matches[0].right
    1
    """
    check_options(match, locals())
    left_ND, right_MD = prepare_rows(to_rows(left, "left"), "cosine"), prepare_rows(to_rows(right, "right"), "cosine")
    if left_ND.size and right_MD.size:
        check_same_dimension(left_ND, right_MD, "left", "right")
    if numbers and texts is None:
        raise UsageError("numbers: found no texts to read numbers in\n  hand over the texts of both sides too")
    allowed = _Allowed(*texts, len(left_ND), len(right_MD)) if numbers and texts is not None else None
    if not len(left_ND) or not len(right_MD):
        return _make_matches(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.float32), len(left_ND), len(right_MD), exact=True)
    means = _Means.of(left_ND, right_MD, neighbours) if margin else None
    exact = not one_to_one or len(left_ND) * len(right_MD) <= ASSIGNED_CELLS
    if not one_to_one:
        pairs_P2, scores_P = _take_each_best(left_ND, right_MD, means, allowed)
    elif exact:
        pairs_P2, scores_P = _find_best_assignment(left_ND, right_MD, means, threshold, allowed)
    else:
        pairs_P2, scores_P = _sort_best_first(left_ND, right_MD, means, allowed)
    if threshold is not None:
        kept = scores_P >= np.float32(threshold)
        pairs_P2, scores_P = pairs_P2[kept], scores_P[kept]
    return _make_matches(pairs_P2, scores_P, len(left_ND), len(right_MD), exact=exact)


@dataclass(frozen=True)
class _Means:
    """Half the average cosine of each row with its nearest neighbours on the other side."""

    left_N: Vectors
    right_M: Vectors

    @classmethod
    def of(cls, left_ND: Vectors, right_MD: Vectors, neighbours: int) -> _Means:
        forward, _ = top_k(left_ND, right_MD, k=neighbours)
        backward, _ = top_k(right_MD, left_ND, k=neighbours)
        return cls(forward.mean(axis=1) / 2, backward.mean(axis=1) / 2)

    def margins(self, cosines: Vectors, left: Ints | slice, right: Ints | slice) -> Vectors:
        """Return cosines as margins; rows and columns as numpy would broadcast them."""
        left_mean = self.left_N[left] if cosines.ndim == 1 else self.left_N[left][:, None]
        return np.asarray(cosines / np.maximum(left_mean + self.right_M[right], _SMALLEST_MEAN), dtype=np.float32)


class _Allowed:
    """Says which pairs of rows may go together: those whose texts do not contradict each other in their numbers."""

    def __init__(self, left: Sequence[str], right: Sequence[str], n: int, m: int) -> None:
        if (len(left), len(right)) != (n, m):
            raise UsageError(f"texts: found {len(left):,} and {len(right):,} texts for {n:,} and {m:,} vectors; expected one for each")
        self.left, self.right = ([read_numbers(text) for text in texts] for texts in (left, right))
        self._contradict = cache(contradict)

    def pairs(self, left_P: Ints, right_P: Ints) -> NDArray[np.bool_]:
        """Return for each pair whether it may be."""
        places = zip(left_P.tolist(), right_P.tolist(), strict=True)
        return np.array([not self._contradict(self.left[a], self.right[b]) for a, b in places], dtype=bool)

    def grid(self) -> NDArray[np.bool_]:
        """Return it for all pairs, shape (n, m)."""
        left_P, right_P = np.divmod(np.arange(len(self.left) * len(self.right)), len(self.right))
        return self.pairs(left_P, right_P).reshape(len(self.left), len(self.right))


def _take_each_best(left_ND: Vectors, right_MD: Vectors, means: _Means | None, allowed: _Allowed | None) -> tuple[Ints, Vectors]:
    k = 1 if means is None and allowed is None else CANDIDATES
    rows = np.arange(len(left_ND))
    found: list[tuple[Ints, Vectors]] = []
    while len(rows):
        left_P, right_P, scores_P = _find_candidates(left_ND, right_MD, means, k, rows)
        if allowed is not None:
            may_P = allowed.pairs(left_P, right_P)
            left_P, right_P, scores_P = left_P[may_P], right_P[may_P], scores_P[may_P]
        order = np.lexsort((right_P, -scores_P, left_P))
        settled, first = np.unique(left_P[order], return_index=True)
        chosen = order[first]
        found.append((np.stack([left_P[chosen], right_P[chosen]], axis=1), scores_P[chosen]))
        # A row whose nearest all contradict it looks further, until there are no more.
        rows, k = np.setdiff1d(rows, settled) if k < len(right_MD) else rows[:0], k * 8
    return np.concatenate([pairs for pairs, _ in found]), np.concatenate([scores for _, scores in found])


def _find_best_assignment(
    left_ND: Vectors, right_MD: Vectors, means: _Means | None, threshold: float | None, allowed: _Allowed | None
) -> tuple[Ints, Vectors]:
    scores_NM = similarity(left_ND, right_MD)
    if means is not None:
        scores_NM = means.margins(scores_NM, slice(None), slice(None))
    may_NM = np.ones(scores_NM.shape, dtype=bool) if allowed is None else allowed.grid()
    # A pair below the threshold, or one that may not be, is worth as much as none.
    none = scores_NM.min() if threshold is None else np.float32(threshold)
    rows, columns = assign(np.where(may_NM & (scores_NM >= none), scores_NM, none))
    kept = may_NM[rows, columns]
    return np.stack([rows[kept], columns[kept]], axis=1), scores_NM[rows[kept], columns[kept]]


def _sort_best_first(left_ND: Vectors, right_MD: Vectors, means: _Means | None, allowed: _Allowed | None) -> tuple[Ints, Vectors]:
    turned = None if means is None else _Means(means.right_M, means.left_N)
    left_P, right_P, scores_P = _find_candidates(left_ND, right_MD, means, CANDIDATES)
    more_right, more_left, more_scores = _find_candidates(right_MD, left_ND, turned, CANDIDATES)
    pairs_P2 = np.concatenate([np.stack([left_P, right_P], axis=1), np.stack([more_left, more_right], axis=1)])
    scores_P = np.concatenate([scores_P, more_scores])
    if allowed is not None:
        may_P = allowed.pairs(pairs_P2[:, 0], pairs_P2[:, 1])
        pairs_P2, scores_P = pairs_P2[may_P], scores_P[may_P]
    taken = assign_greedily(pairs_P2[:, 0], pairs_P2[:, 1], scores_P)
    return pairs_P2[taken], scores_P[taken]


def _find_candidates(
    left_ND: Vectors, right_MD: Vectors, means: _Means | None, k: int, rows: Ints | None = None
) -> tuple[Ints, Ints, Vectors]:
    """Return each left row, or those among `rows`, with its k nearest right rows, and their scores."""
    wanted = np.arange(len(left_ND)) if rows is None else rows
    scores_NK, right_NK = top_k(left_ND[wanted], right_MD, k=k)
    left_P, right_P = np.repeat(wanted, scores_NK.shape[1]), right_NK.reshape(-1)
    scores_P = scores_NK.reshape(-1)
    return left_P, right_P, scores_P if means is None else means.margins(scores_P, left_P, right_P)


def _make_matches(pairs_P2: Ints, scores_P: Vectors, n: int, m: int, *, exact: bool) -> Matched:
    order = np.argsort(pairs_P2[:, 0], kind="stable")
    rows = zip(pairs_P2[order].tolist(), scores_P[order].tolist(), strict=True)
    left_alone = np.setdiff1d(np.arange(n), pairs_P2[:, 0])
    right_alone = np.setdiff1d(np.arange(m), pairs_P2[:, 1])
    matches = tuple(Match(left, right, score) for (left, right), score in rows)
    return Matched(matches, tuple(left_alone.tolist()), tuple(right_alone.tolist()), exact)
