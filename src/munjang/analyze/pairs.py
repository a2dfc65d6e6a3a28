"""One collection → its pairs of nearly the same meaning, best first, and the groups they form.

Every row is compared with every other, exactly, tile by tile: half of a square, since (i, j) and (j, i) are one pair. Only the best `top`
pairs at or above the threshold are ever held, so memory is bounded however alike the rows are. Rows that are the very same are one row for
this purpose; they are told apart as `same`, not as pairs, because n of them would make n² pairs that say nothing.

Which rows to throw away is left to `dedupe`.

Shapes: N rows, D dimensions, P candidate pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.dedupe import find_connected, find_same_rows, measure_overlap, split_words
from munjang.analyze.numbers import numbers_differ
from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.text.validate_texts import validate_texts
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import prepare_rows, to_rows
from munjang.wording import brief_repr

TILE = 2048
"""Rows and columns of scores held at once."""


class Pair(NamedTuple):
    """Rows a < b and the cosine of their vectors."""

    a: int
    b: int
    score: float


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Sequence[Pair]):
    """Very many pairs: three arrays, whose single pairs are made when somebody looks at them."""

    a_P: Ints
    b_P: Ints
    score_P: Vectors

    def __len__(self) -> int:
        return len(self.a_P)

    @overload
    def __getitem__(self, place: int) -> Pair: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Pair, ...]: ...

    def __getitem__(self, place: int | slice) -> Pair | tuple[Pair, ...]:
        if isinstance(place, slice):
            return tuple(Pairs(self.a_P[place], self.b_P[place], self.score_P[place]))
        return Pair(int(self.a_P[place]), int(self.b_P[place]), float(self.score_P[place]))

    def __iter__(self) -> Iterator[Pair]:
        return map(Pair._make, zip(self.a_P.tolist(), self.b_P.tolist(), self.score_P.tolist(), strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:2]))
        return f"Pairs({shown}{f', … {len(self):,} in all' if len(self) > 2 else ''})"


@brief_repr
@dataclass(frozen=True)
class MinedPairs(Table):
    """The pairs and identical rows of a collection."""

    columns: ClassVar[tuple[str, ...]] = ("a", "b", "score")

    pairs: Pairs
    """Best first, equal scores by rows; of rows that are the same, only the first."""
    same: tuple[tuple[int, ...], ...]
    """Groups of identical rows, two or more each."""
    cut: bool
    """Whether there are more pairs at or above the threshold than were asked for."""

    def to_rows(self) -> list[Row]:
        """Return the pairs, best first."""
        return [pair._asdict() for pair in self.pairs]

    def groups(self) -> list[tuple[int, ...]]:
        """Return groups of rows connected by pairs or equality, the largest first."""
        links = list(zip(self.pairs.a_P.tolist(), self.pairs.b_P.tolist(), strict=True))
        return find_connected(links + [(group[0], other) for group in self.same for other in group[1:]])


def mine_pairs(
    vectors: ArrayLike,
    *,
    texts: Sequence[str] | None = None,
    threshold: Annotated[float, Option("Minimum cosine of a pair; above 1, only identical texts count.", min=-1)] = 0.8,
    top: Annotated[int, Option("Maximum number of pairs.", min=1, flags=("--top", "-k"))] = 1_000,
    max_overlap: Annotated[float | None, Option("Skip pairs that share more than this fraction of their words.", min=0, max=1)] = None,
    numbers: Annotated[bool, Option("Skip pairs whose numbers, units, model codes or variants (Pro, Mini) differ.")] = False,
    tile: int = TILE,
) -> MinedPairs:
    """Return the `top` best pairs of rows whose cosine is at least the threshold.

    With `max_overlap`, pairs of texts that share a larger part of their words (Jaccard) do not count: what is left says the same in other
    words. With `numbers`, pairs of texts whose numbers, units, model codes or variants contradict each other do not count. Both need
    `texts`, which also decide what is the very same; without them the vectors' bits do.

    >>> mine_pairs([[1, 0], [0, 1], [3, 0.1]], threshold=0.9).pairs[0].b
    2
    """
    check_options(mine_pairs, locals())
    rows_ND = to_rows(vectors, "vectors")
    texts = None if texts is None else validate_texts(texts)
    _check(len(rows_ND), texts, max_overlap, numbers, tile)
    same = find_same_rows(texts, rows_ND)
    first = np.array([group[0] for group in same], dtype=np.int64)
    unit_ND = prepare_rows(rows_ND[first] if len(first) < len(rows_ND) else rows_ND, "cosine")
    best = _BestPairs(top, threshold, _filter(texts, first, max_overlap, numbers))
    scores = np.empty(min(tile, len(unit_ND)) ** 2, dtype=np.float32)
    for at in range(0, len(unit_ND), tile):
        for beside in range(at, len(unit_ND), tile):
            a_ND, b_MD = unit_ND[at : at + tile], unit_ND[beside : beside + tile]
            scores_NM = scores[: len(a_ND) * len(b_MD)].reshape(len(a_ND), len(b_MD))
            best.offer(np.matmul(a_ND, b_MD.T, out=scores_NM), at, beside)
    a_P, b_P, score_P = best.answer()
    return MinedPairs(Pairs(first[a_P], first[b_P], score_P), tuple(group for group in same if len(group) > 1), best.cut)


class _Keep:
    """Says which pairs of rows count, one by one and only as far as needed."""

    def __init__(self, texts: Sequence[str], first: Ints, max_overlap: float | None, numbers: bool) -> None:
        self.max_overlap, self.numbers = max_overlap, numbers
        self._texts, self._first = texts, first
        self.words = cache(lambda row: split_words(self._text(row)))

    def best(self, a_P: Ints, b_P: Ints, count: int) -> Ints:
        """Return the places of the first `count` pairs that count."""
        kept: list[int] = []
        for place, (a, b) in enumerate(zip(a_P.tolist(), b_P.tolist(), strict=True)):
            if self._counts(a, b):
                kept.append(place)
                if len(kept) == count:
                    break
        return np.array(kept, dtype=np.int64)

    def _text(self, row: int) -> str:
        return self._texts[int(self._first[row])]

    def _counts(self, a: int, b: int) -> bool:
        if self.numbers and numbers_differ(self._text(a), self._text(b)):
            return False
        return self.max_overlap is None or measure_overlap(self.words(a), self.words(b)) <= self.max_overlap


class _BestPairs:
    """The best pairs so far."""

    def __init__(self, top: int, threshold: float, keep: _Keep | None) -> None:
        self.top, self.keep, self.cut = top, keep, False
        self.floor = np.float32(threshold)
        self.a_P, self.b_P = (np.empty(0, dtype=np.int64) for _ in range(2))
        self.score_P = np.empty(0, dtype=np.float32)

    def offer(self, scores_NM: Vectors, at: int, beside: int) -> None:
        """Let the pairs of one tile compete; on the diagonal only those above it."""
        if at == beside:
            for row in range(len(scores_NM)):
                scores_NM[row, : row + 1] = -np.inf
        flat = np.flatnonzero(scores_NM >= self.floor)
        if not len(flat):
            return
        score_P = scores_NM.reshape(-1)[flat]
        # One more than asked for, so that it shows whether there were more.
        if self.keep is None:
            chosen = _take_largest(score_P, self.top + 1)
            flat, score_P = flat[chosen], score_P[chosen]
        a_P, b_P = np.divmod(flat, scores_NM.shape[1])
        if self.keep is not None:
            order = np.lexsort((b_P, a_P, -score_P))
            chosen = order[self.keep.best(a_P[order] + at, b_P[order] + beside, self.top + 1)]
            a_P, b_P, score_P = a_P[chosen], b_P[chosen], score_P[chosen]
        self._join(a_P + at, b_P + beside, score_P)

    def answer(self) -> tuple[Ints, Ints, Vectors]:
        """Return rows and scores, best first, equal scores by rows."""
        by_rows = np.argsort(self.a_P * (self.b_P.max(initial=0) + 1) + self.b_P)
        order = by_rows[np.argsort(-self.score_P[by_rows], kind="stable")][: self.top]
        self.cut |= len(self.score_P) > self.top
        return self.a_P[order], self.b_P[order], np.minimum(self.score_P[order], np.float32(1))

    def _join(self, a_P: Ints, b_P: Ints, score_P: Vectors) -> None:
        self.a_P, self.b_P = np.concatenate([self.a_P, a_P]), np.concatenate([self.b_P, b_P])
        self.score_P = np.concatenate([self.score_P, score_P])
        if len(self.score_P) > 2 * self.top:
            kept = _take_largest(self.score_P, self.top)
            if len(kept) > 2 * self.top:  # nearly all tie: rows decide
                kept = np.lexsort((self.b_P, self.a_P, -self.score_P))[: self.top]
            self.a_P, self.b_P, self.score_P = self.a_P[kept], self.b_P[kept], self.score_P[kept]
            self.cut = True
            self.floor = self.score_P.min()


def _take_largest(score_P: Vectors, count: int) -> NDArray[np.intp]:
    """Return the places of the largest scores and of all that tie with the least of them."""
    if len(score_P) <= count:
        return np.arange(len(score_P))
    return np.flatnonzero(score_P >= np.partition(score_P, len(score_P) - count)[len(score_P) - count])


def _filter(texts: Sequence[str] | None, first: Ints, max_overlap: float | None, numbers: bool) -> _Keep | None:
    return None if texts is None or (max_overlap is None and not numbers) else _Keep(texts, first, max_overlap, numbers)


def _check(rows: int, texts: Sequence[str] | None, max_overlap: float | None, numbers: bool, tile: int) -> None:
    if texts is not None and len(texts) != rows:
        raise UsageError(f"texts: found {len(texts):,} for {rows:,} vectors; expected one for each")
    if max_overlap is not None and texts is None:
        raise UsageError("max_overlap: found no texts to count words in\n  pass the texts too")
    if numbers and texts is None:
        raise UsageError("numbers: found no texts to read numbers in\n  pass the texts too")
    if tile < 1:
        raise UsageError(f"tile is {tile}, expected at least 1")
