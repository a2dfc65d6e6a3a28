"""Vectors → communities: groups of rows that lie within a threshold of their centre, the densest first.

The rule is that of sentence-transformers' `community_detection`: every row with enough neighbours proposes itself and them; proposals are
taken from the largest to the smallest (equal ones by row), a row belongs to the first that takes it, and what is left of a proposal
counts if it is still large enough. A proposal falls if its centre is taken.

All pairs are compared exactly (`vectors.within`). Rows that are the very same are compared once. Neighbours are kept only while they are
few; beyond, only their numbers are kept, and the neighbours of a centre are found again when its turn comes. So memory is bounded.

Shapes: N rows, U different rows, D dimensions, P pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.alike import same_rows
from munjang.errors import UsageError
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import as_rows, prepared
from munjang.vectors.within import visit_pairs_within

MAX_PAIRS = 16_000_000
"""Pairs of neighbours that are kept; 24 bytes each while they are sorted."""

Neighbours = Callable[[int], tuple[Ints, Vectors]]
"""A row → the other rows within the threshold and their cosines."""


def communities(vectors: ArrayLike, *, threshold: float = 0.75, min_size: int = 10, max_pairs: int = MAX_PAIRS) -> list[tuple[int, ...]]:
    """Return the communities, largest first; of each the centre first, then the others by how close they are, equal ones by row.

    >>> communities([[1, 0], [0, 1], [1, 0.1], [0.9, 0]], threshold=0.9, min_size=2)
    [(0, 3, 2)]
    """
    rows_ND = as_rows(vectors, "vectors")
    if min_size < 1:
        raise UsageError(f"min_size is {min_size}, expected at least 1")
    if len(rows_ND) < min_size or not rows_ND.size:
        return []
    unit_ND = prepared(rows_ND, "cosine")
    same = same_rows(None, unit_ND)
    unit_UD = unit_ND[[group[0] for group in same]]
    copies_U = np.array([len(group) for group in same], dtype=np.int64)
    near = _Near(unit_UD, copies_U, threshold, max_pairs)
    visit_pairs_within(unit_UD, threshold, near.visit)
    nonzero_U = unit_UD.any(axis=1)
    chosen = _chosen(near.count_U * nonzero_U, copies_U, min_size, near.neighbours())
    return sorted((_expanded(members, same) for members in chosen), key=len, reverse=True)


def labels_of(groups: list[tuple[int, ...]], rows: int) -> Ints:
    """Return the number of each row's group, −1 for rows in none.

    >>> labels_of([(0, 3)], 4).tolist()
    [0, -1, -1, 0]
    """
    labels_N = np.full(rows, -1, dtype=np.int64)
    for number, members in enumerate(groups):
        labels_N[list(members)] = number
    return labels_N


class _Near:
    """How many neighbours every row has, and which, as long as they are few enough to be kept."""

    def __init__(self, unit_UD: Vectors, copies_U: Ints, threshold: float, max_pairs: int) -> None:
        self.unit_UD, self.copies_U = unit_UD, copies_U
        self.floor, self.max_pairs = np.float32(threshold), max_pairs
        self.count_U = copies_U.copy()
        self._kept: list[tuple[Ints, Ints, Vectors]] | None = []
        self._pairs = 0

    def visit(self, a_P: Ints, b_P: Ints, score_P: Vectors) -> None:
        """Count the pairs, and keep them if there is room."""
        size = len(self.count_U)
        for one_P, other_P in ((a_P, b_P), (b_P, a_P)):
            self.count_U += np.bincount(one_P, weights=self.copies_U[other_P], minlength=size).astype(np.int64)
        self._pairs += len(a_P)
        if self._pairs > self.max_pairs:
            self._kept = None
        if self._kept is not None:
            self._kept.append((a_P.astype(np.int32), b_P.astype(np.int32), score_P))

    def neighbours(self) -> Neighbours:
        """Return the way to each row's neighbours."""
        if self._kept is None:
            return self._found_again
        return _listed(self._kept, len(self.count_U))

    def _found_again(self, centre: int) -> tuple[Ints, Vectors]:
        """Compare one row with all others once more."""
        scores_U = self.unit_UD @ self.unit_UD[centre]
        scores_U[centre] = -np.inf
        near = np.flatnonzero(scores_U >= self.floor)
        return near, scores_U[near]


def _listed(kept: list[tuple[Ints, Ints, Vectors]], rows: int) -> Neighbours:
    """Return a way to each row's neighbours, sorted by cosine, then by row."""
    empty = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    a_P, b_P, score_P = (np.concatenate(part) for part in zip(empty, *kept, strict=True))
    one_P, other_P = np.concatenate([a_P, b_P]), np.concatenate([b_P, a_P])
    order = np.argsort(one_P, kind="stable")
    begins = np.searchsorted(one_P[order], np.arange(rows + 1))
    other_P, score_P = other_P[order], np.concatenate([score_P, score_P])[order]

    def neighbours(centre: int) -> tuple[Ints, Vectors]:
        part = slice(begins[centre], begins[centre + 1])
        return other_P[part].astype(np.int64), score_P[part]

    return neighbours


def _chosen(count_U: Ints, copies_U: Ints, min_size: int, neighbours: Neighbours) -> Iterator[list[int]]:
    """Yield the different rows of each community, the centre first."""
    order = np.argsort(-count_U, kind="stable")
    centres = order[count_U[order] >= min_size]
    used_U = np.zeros(len(count_U), dtype=bool)
    for centre in centres.tolist():
        if used_U[centre]:
            continue
        other_P, score_P = neighbours(centre)
        free = ~used_U[other_P]
        other_P, score_P = other_P[free], score_P[free]
        if copies_U[centre] + copies_U[other_P].sum() < min_size:
            continue
        other_P = other_P[np.lexsort((other_P, -score_P))]
        used_U[centre] = True
        used_U[other_P] = True
        yield [centre, *other_P.tolist()]


def _expanded(members: list[int], same: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(row for member in members for row in same[member])
