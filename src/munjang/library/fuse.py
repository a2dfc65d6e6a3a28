"""Several rankings of the same things → one, by reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009).

A thing's score is the sum of weight / (constant + rank) over the rankings that hold it. Only ranks count, so BM25 and cosine need no common
scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from munjang.errors import UsageError


@dataclass(frozen=True)
class Hybrid:
    """How much meaning and words weigh, and how soon a rank's worth falls off. A weight of 0 leaves that part out."""

    meaning: float = 1.0
    words: float = 1.0
    constant: float = 60.0

    def __post_init__(self) -> None:
        if self.meaning < 0 or self.words < 0 or self.meaning + self.words <= 0 or self.constant < 0:
            raise UsageError(f"weights {self.meaning} and {self.words} with constant {self.constant}: expected none below 0 and one above")


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
