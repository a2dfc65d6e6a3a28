"""Hits in one order → hits in the order of a cross-encoder, which reads query and passage together.

A small cross-encoder knows more about meaning than about names and numbers, which the first ranking found by their letters. So the first
ranking may keep part of the weight: both scores are scaled to at most 1 and added.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from munjang.errors import UsageError
from munjang.library.ranking import min_max_scale
from munjang.library.results import Hit
from munjang.types import Scorer
from munjang.wording import count

AT_ONCE = 16
"""Pairs that are scored between two looks at the clock."""


class BudgetWarning(UserWarning):
    """The time was up before a re-ranker had scored all candidates; the message says how far it got."""


@runtime_checkable
class BudgetObserver(Protocol):
    """A scorer that is told when time was up; then nothing is warned of."""

    def time_was_up(self, scored: int, candidates: int, /) -> None:
        """Take note of how many of the candidates were scored."""
        ...


def rerank_hits(
    query: str,
    hits: list[Hit],
    scorer: Scorer,
    *,
    weight: float | None = None,
    least: float = 0.0,
    budget_seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Hit]:
    """Return the hits by the scorer's score; with a `weight` below 1, the rest of the weight goes to the first-stage score.

    Without a `weight`, the scorer gets what it asks for (`share`, as a cross-encoder has it), else all of it.
    `least` is the least score that they could have come with. A fused score lies between 0 and 1; a scorer's number outside of that is
    taken for a logit.

    When time is up, those not yet scored follow in their old order with `reranked` False, and a BudgetWarning says how many were scored,
    or the scorer is told where it wants to know.
    """
    if not callable(getattr(scorer, "predict", None)):
        raise UsageError(
            f"rerank is a {type(scorer).__name__}, which scores no pairs of texts, expected a cross-encoder\n"
            "  load one with CrossEncoder.load"
        )
    weight = float(getattr(scorer, "share", 1.0)) if weight is None else weight
    if not 0 < weight <= 1:
        raise UsageError(f"the re-ranker's weight is {weight}, expected more than 0 and at most 1")
    end = None if budget_seconds is None else clock() + budget_seconds
    scored: list[Hit] = []
    for start in range(0, len(hits), AT_ONCE):
        if end is not None and clock() >= end:
            break
        part = hits[start : start + AT_ONCE]
        scores = np.asarray(scorer.predict([(query, hit.passage) for hit in part]), dtype=np.float64).reshape(len(part), -1)
        if scores.shape[1] != 1:
            raise UsageError(f"the re-ranker gives {scores.shape[1]} scores for a pair, expected one\n  use a cross-encoder with one label")
        scored += [
            replace(hit, score=float(score), reranked=True, scored_by="cross-encoder")
            for hit, score in zip(part, scores[:, 0], strict=True)
        ]
    if len(scored) < len(hits) and isinstance(scorer, BudgetObserver):
        scorer.time_was_up(len(scored), len(hits))
    elif len(scored) < len(hits):
        warnings.warn(
            f"the budget of {budget_seconds or 0:g} s was up after re-ranking {len(scored):,} of {count(len(hits), 'document')}; "
            "the rest follow in their old order",
            BudgetWarning,
            stacklevel=2,
        )
    return sorted(_fuse(hits, scored, weight, least), key=lambda hit: -hit.score) + hits[len(scored) :]


def _fuse(hits: list[Hit], scored: list[Hit], weight: float, least: float) -> list[Hit]:
    """Return the scored hits with the weighted mean of both scores; a weight of 1 leaves the scorer's own."""
    if weight == 1 or not scored:
        return scored
    first = min_max_scale({place: hit.score for place, hit in enumerate(hits)}, least, max(hit.score for hit in hits))
    given_N = np.array([hit.score for hit in scored])
    chance_N = given_N if given_N.min() >= 0 and given_N.max() <= 1 else 1 / (1 + np.exp(-np.clip(given_N, -60, 60)))
    return [replace(hit, score=float(weight * chance_N[place] + (1 - weight) * first[place])) for place, hit in enumerate(scored)]
