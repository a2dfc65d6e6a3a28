"""Semantic textual similarity of a model that scores pairs: its score against people's → Pearson and Spearman, with intervals.

Comes in: a Scorer and `ScoredPair`s, or scores and gold numbers. An encoder of sentences, with its four similarities, is
measured in `sts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from munjang.errors import InputError
from munjang.evaluate.bootstrap import RESAMPLES, Interval, bootstrap_intervals, of_pearson, of_spearman
from munjang.evaluate.correlation import pearson, spearman
from munjang.evaluate.datasets.rows import ScoredPair
from munjang.evaluate.inputs import numbers, same_length, typed_rows
from munjang.evaluate.rerank import relevance
from munjang.evaluate.result import jsonable
from munjang.types import Scorer
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class CorrelationResult:
    """How well one list of scores follows gold scores: `pearson` and `spearman`."""

    n: int
    scores: dict[str, float]
    ci95: dict[str, Interval]

    def to_json(self) -> dict[str, Any]:
        """Return n, both numbers by name, and ci95."""
        return dict(jsonable({"n": self.n, **self.scores, "ci95": self.ci95}))


def evaluate_sts_scores(scorer: Scorer, pairs: Sequence[ScoredPair], *, resamples: int = RESAMPLES, seed: int = 0) -> CorrelationResult:
    """Return a cross-encoder's correlations on pairs with gold scores; a model with several labels is refused."""
    pairs = typed_rows(pairs, ScoredPair, name="pairs")
    if not pairs:
        raise InputError("no pairs to evaluate, expected at least two")
    scores = relevance(scorer, [(pair.a, pair.b) for pair in pairs])
    return score_correlations(scores, [pair.score for pair in pairs], resamples=resamples, seed=seed)


def score_correlations(scores: ArrayLike, gold: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> CorrelationResult:
    """Return the correlations of scores already made. resamples=0 leaves the intervals out."""
    found, truth = numbers(scores, name="scores"), numbers(gold, name="gold scores")
    same_length(found, truth, names=("scores", "gold scores"))
    made = {"pearson": of_pearson(found, truth), "spearman": of_spearman(found, truth)} if resamples else {}
    ci95 = bootstrap_intervals(made, truth.size, resamples=resamples, seed=seed) if made else {}
    return CorrelationResult(int(truth.size), {"pearson": pearson(found, truth), "spearman": spearman(found, truth)}, ci95)
