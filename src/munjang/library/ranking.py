"""Queries → rows of the store, best first: by meaning, by words, or by both fused.

Two rankings are fused by ranks, or by scores. By ranks (reciprocal rank fusion, Cormack, Clarke and Büttcher, 2009): a thing's score is
the sum of weight / (constant + rank) over the rankings that hold it. Only ranks count, so a ranking that tells things apart badly counts as
much as one that does it well.

By scores (a convex sum, Bruch, Gai and Ingber, 2023, with theoretical minima and maxima): each ranking's scores are divided by the
highest that is possible, and averaged with weights. So 1 is the most that a passage can have and 0 is nothing in common, as for a cosine
alone; one common word that a long question shares with a passage counts for little, even if no passage shares more; and scores of
different queries can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from munjang.errors import UsageError
from munjang.library.store import BM25_MOST, Scored, Store, weigh_words
from munjang.library.vector_search import VectorSearch
from munjang.library.where import Condition
from munjang.types import Vectors
from munjang.wording import brief_repr

FUSED_AT_LEAST = 200
"""Rows of each ranking that are fused at least, so that a small k does not change who is first."""

COSINES = (-1.0, 1.0)
"""The lowest and the highest cosine."""


@brief_repr
@dataclass(frozen=True)
class Query:
    """One thing to look for: a unit vector, the words of the question if it has any, and its tokens' vectors if these are compared."""

    vector_D: Vectors
    words: tuple[str, ...]
    text: str = ""
    tokens_QD: Vectors | None = None


class Ranked(NamedTuple):
    """A row, its score, and where that comes from."""

    row: int
    score: float
    cosine: float | None = None
    meaning_rank: int | None = None
    bm25: float | None = None
    words_rank: int | None = None
    words_share: float | None = None
    """BM25 as a share of the highest that is possible."""


def rank_rows(
    store: Store,
    meaning: VectorSearch,
    queries: Sequence[Query],
    depth: int,
    *,
    where: Condition | None,
    hybrid: Hybrid | None,
    exact: bool | None,
) -> list[list[Ranked]]:
    """Return at least `depth` rows for each query if there are so many."""
    if hybrid is None:
        found = _by_meaning(meaning, queries, depth, where, exact)
        return [[Ranked(each.row, each.score, each.score, rank) for rank, each in enumerate(one, start=1)] for one in found]
    depth = max(FUSED_AT_LEAST, 2 * depth)
    by_meaning = _by_meaning(meaning, queries, depth, where, exact) if hybrid.meaning else [[] for _ in queries]
    answers = []
    for query, dense in zip(queries, by_meaning, strict=True):
        lexical = store.lexical(query.words, depth, where=where) if hybrid.words else []
        highest = highest_bm25(*store.word_frequencies(query.words)) if lexical and hybrid.by == "scores" else 0.0
        answers.append(_fuse(dense, lexical, highest, hybrid))
    return answers


def _by_meaning(
    meaning: VectorSearch, queries: Sequence[Query], depth: int, where: Condition | None, exact: bool | None
) -> list[list[Scored]]:
    return meaning.nearest(np.stack([query.vector_D for query in queries]), depth, where=where, exact=exact)


def highest_bm25(passages: int, frequencies: Sequence[int]) -> float:
    """Return the bound that no passage's BM25 reaches: every word asked for, again and again. `frequencies` are passages that hold each.

    >>> round(highest_bm25(10, [0, 2]), 3)
    9.39
    """
    return BM25_MOST * sum(weigh_words(passages, frequencies))


def _share(score: float, highest: float) -> float | None:
    return min(score / highest, 1.0) if highest else None


def _fuse(dense: list[Scored], lexical: list[Scored], highest: float, hybrid: Hybrid) -> list[Ranked]:
    cosines = {each.row: (each.score, rank) for rank, each in enumerate(dense, start=1)}
    bm25s = {each.row: (each.score, rank, _share(each.score, highest)) for rank, each in enumerate(lexical, start=1)}
    weights = [hybrid.meaning, hybrid.words]
    if hybrid.by == "ranks":
        fused = fuse_ranks([[each.row for each in dense], [each.row for each in lexical]], weights, constant=hybrid.constant)
    else:
        scores = [{each.row: each.score for each in found} for found in (dense, lexical)]
        fused = fuse_scores(scores, weights, bounds=[COSINES, (0.0, highest)])
    return [Ranked(row, score, *cosines.get(row, (None, None)), *bm25s.get(row, (None, None, None))) for row, score in fused]


@brief_repr
@dataclass(frozen=True)
class Hybrid:
    """How much meaning and words weigh. A weight of 0 leaves that part out; `constant` says how soon a rank's worth falls off.

    `Library.search(by=Hybrid(…))` takes it. By scores, the score is the mean of the cosine and of BM25 as a share of the highest that is
    possible, with the weights meaning / 2 and words.

    The weight of words was chosen on data that is not reported (docs/results.md, library and search).
    """

    meaning: float = 1.0
    words: float = 0.6
    by: Literal["scores", "ranks"] = "scores"
    constant: float = 60.0

    @property
    def lowest(self) -> float:
        """The lowest score that is possible: a cosine of -1, and no word."""
        if self.by == "ranks" or not self.meaning:
            return 0.0
        weights = _spread_weights((self.meaning, self.words), (COSINES, (0.0, 1.0)))
        return COSINES[0] * weights[0] / sum(weights)

    def __post_init__(self) -> None:
        if self.meaning < 0 or self.words < 0 or self.meaning + self.words <= 0 or self.constant < 0:
            raise UsageError(f"weights {self.meaning} and {self.words} with constant {self.constant}: expected none below 0 and one above")
        if self.by not in ("scores", "ranks"):
            raise UsageError(f"by is {self.by!r}, expected scores or ranks")


By: TypeAlias = Literal["meaning", "words"] | Hybrid | None
"""What a search looks at: meaning alone, words alone, or both, weighed as `Hybrid` says; None is both, as the library weighs them."""


def fuse_scores(
    rankings: Sequence[Mapping[int, float]], weights: Sequence[float], *, bounds: Sequence[tuple[float, float]]
) -> list[tuple[int, float]]:
    """Return every row with its fused score, at most 1, best first, the lower row first on ties; `bounds` are the scores possible.

    A weight is for the whole range from the lowest score to the highest: that of cosines is twice as wide as that of words, so a cosine
    counts half. A row that a ranking does not hold gets 0 there where scores begin at 0 (no word was found), and otherwise what the last
    row has, since it stands behind it.

    >>> fuse_scores([{7: 1.0, 8: 0.5}, {8: 12.0}], [1, 1], bounds=[(-1, 1), (0, 16)])
    [(8, 0.6666666666666666), (7, 0.3333333333333333)]
    """
    rows_N = np.array(sorted(set().union(*rankings)), dtype=np.int64)
    spread = _spread_weights(weights, bounds)
    total_N = np.zeros(len(rows_N))
    for ranking, weight, (low, high) in zip(rankings, spread, bounds, strict=True):
        scores = np.fromiter(ranking.values(), np.float64)
        part = np.minimum(scores / high, 1.0) if high > 0 else np.ones(len(scores))
        part_N = np.full(len(rows_N), part.min(initial=1.0) if low < 0 and len(part) else 0.0)
        part_N[np.searchsorted(rows_N, np.fromiter(ranking, np.int64))] = part
        total_N += weight * part_N
    total_N /= sum(spread)
    best = np.lexsort((rows_N, -total_N))
    return list(zip(rows_N[best].tolist(), total_N[best].tolist(), strict=True))


def _spread_weights(weights: Sequence[float], bounds: Sequence[tuple[float, float]]) -> list[float]:
    """Return each weight for a score that is divided by the highest one."""
    return [weight * high / (high - low) if high > low else weight for weight, (low, high) in zip(weights, bounds, strict=True)]


def min_max_scale(scores: Mapping[int, float], low: float, high: float) -> dict[int, float]:
    """Return the scores scaled so that `low` is 0 and `high` is 1; all are 1 where the two are the same.

    >>> min_max_scale({1: 3.0, 2: 1.0}, 1.0, 5.0)
    {1: 0.5, 2: 0.0}
    """
    return {row: min((score - low) / (high - low), 1.0) if high > low else 1.0 for row, score in scores.items()}


def fuse_ranks(rankings: Sequence[Sequence[int]], weights: Sequence[float], *, constant: float = 60.0) -> list[tuple[int, float]]:
    """Return every row with its fused score, best first, the lower row first on ties.

    >>> fuse_ranks([[7, 8], [8, 9]], [1, 1])[0]
    (8, 0.03252247488101534)
    """
    scores: dict[int, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, row in enumerate(ranking, start=1):
            scores[row] = scores.get(row, 0.0) + weight / (constant + rank)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))
