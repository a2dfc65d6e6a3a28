"""Several rankings of the same things → one: by ranks, or by scores.

By ranks (reciprocal rank fusion, Cormack, Clarke and Büttcher, 2009): a thing's score is the sum of weight / (constant + rank) over the
rankings that hold it. Only ranks count, so a ranking that tells things apart badly has as much to say as one that does it well.

By scores (a convex sum with theoretical minima, Bruch, Gai and Ingber, 2023): each ranking's scores are stretched so that the least score
that could be is 0 and the best one found is 1, and then added with weights. A model to which everything looks alike gives nearly the same
to all, and so leaves the order to the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from munjang.errors import UsageError


@dataclass(frozen=True)
class Hybrid:
    """How much meaning and words weigh. A weight of 0 leaves that part out; `constant` says how soon a rank's worth falls off."""

    meaning: float = 1.0
    words: float = 1.0
    by: Literal["scores", "ranks"] = "scores"
    constant: float = 60.0

    def __post_init__(self) -> None:
        if self.meaning < 0 or self.words < 0 or self.meaning + self.words <= 0 or self.constant < 0:
            raise UsageError(f"weights {self.meaning} and {self.words} with constant {self.constant}: expected none below 0 and one above")
        if self.by not in ("scores", "ranks"):
            raise UsageError(f"by is {self.by!r}, expected scores or ranks")


def fuse_scores(rankings: Sequence[Mapping[int, float]], weights: Sequence[float], *, least: Sequence[float]) -> list[tuple[int, float]]:
    """Return every row with its fused score from 0 to 1, best first, the lower row first on ties; `least` are the least scores possible.

    A row that a ranking does not hold gets 0 there where scores begin at 0 (no word was found), and otherwise what the last row has, since
    it stands behind it.

    >>> fuse_scores([{7: 1.0, 8: 0.5}, {8: 12.0}], [1, 1], least=[-1, 0])
    [(8, 0.875), (7, 0.5)]
    """
    parts = [stretched(ranking, low) for ranking, low in zip(rankings, least, strict=True)]
    rows = sorted({row for ranking in rankings for row in ranking})
    total = sum(weights)
    scores = {
        row: sum(weight * each.get(row, absent) for weight, (each, absent) in zip(weights, parts, strict=True)) / total for row in rows
    }
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def stretched(ranking: Mapping[int, float], least: float) -> tuple[dict[int, float], float]:
    """Return the scores as parts of the best one, and what a row has that is not there."""
    best = max(ranking.values(), default=least)
    if best <= least:
        return dict.fromkeys(ranking, 1.0), 0.0
    parts = {row: (score - least) / (best - least) for row, score in ranking.items()}
    return parts, min(parts.values()) if least < 0 else 0.0


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
