"""Hits in one order → hits in the order of a cross-encoder, which reads query and passage together."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from munjang.errors import UsageError
from munjang.library.hits import Hit
from munjang.types import Scorer

AT_ONCE = 16
"""Pairs that are scored between two looks at the clock."""


class BudgetWarning(UserWarning):
    """Time was up before a re-ranker had scored all candidates; its message says how far it got."""


def rerank_hits(
    query: str, hits: list[Hit], scorer: Scorer, *, budget_seconds: float | None = None, clock: Callable[[], float] = time.monotonic
) -> list[Hit]:
    """Return the hits by the scorer's score.

    When time is up, those not yet scored follow in their old order with `reranked` False, and a BudgetWarning says how many were scored.
    """
    end = None if budget_seconds is None else clock() + budget_seconds
    scored: list[Hit] = []
    for start in range(0, len(hits), AT_ONCE):
        if end is not None and clock() >= end:
            break
        part = hits[start : start + AT_ONCE]
        scores = np.asarray(scorer.predict([(query, hit.passage) for hit in part]), dtype=np.float64).reshape(len(part), -1)
        if scores.shape[1] != 1:
            raise UsageError(f"the re-ranker gives {scores.shape[1]} scores for a pair, expected one\n  use a cross-encoder with one label")
        scored += [replace(hit, score=float(score), reranked=True) for hit, score in zip(part, scores[:, 0], strict=True)]
    if len(scored) < len(hits):
        warnings.warn(
            f"the budget of {budget_seconds or 0:g} s was up after re-ranking {len(scored):,} of {len(hits):,} documents; "
            "the rest follow in their old order",
            BudgetWarning,
            stacklevel=2,
        )
    return sorted(scored, key=lambda hit: -hit.score) + hits[len(scored) :]
