"""Relevance and vectors of candidates → the few that are relevant and unlike each other.

Each choice takes relevance (how close a candidate is to its document) and the candidates' unit vectors, and returns places, the best
first; the answer for k is a prefix of the answer for k + 1. Equal candidates are chosen by place.

Shapes: C candidates, D dimensions.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from munjang.errors import UsageError, shown
from munjang.types import Vectors

Choice: TypeAlias = Literal["mmr", "max-sum", "nearest"]


def choose(relevance_C: Vectors, unit_CD: Vectors, *, k: int, how: Choice, diversity: float, pool: int) -> list[int]:
    """Return the places of at most k candidates."""
    if how == "mmr":
        return mmr(relevance_C, unit_CD, k=k, diversity=diversity)
    if how == "max-sum":
        return max_sum(relevance_C, unit_CD, k=k, pool=pool)
    if how == "nearest":
        return [int(place) for place in np.argsort(-relevance_C, kind="stable")[:k]]
    raise UsageError(f"the choice {shown(str(how))} is unknown, expected mmr, max-sum or nearest")


def mmr(relevance_C: Vectors, unit_CD: Vectors, *, k: int, diversity: float) -> list[int]:
    """Choose by maximal marginal relevance: (1 − diversity) × relevance − diversity × the closest one chosen already.

    >>> unit = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    >>> mmr(np.array([0.9, 0.9, 0.5], dtype=np.float32), unit, k=2, diversity=0.5)
    [0, 2]
    """
    if not 0 <= diversity <= 1:
        raise UsageError(f"diversity is {diversity}, expected a number from 0 to 1")
    gain_C = (1 - diversity) * relevance_C.astype(np.float64)
    closest_C = np.full(len(relevance_C), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(k, len(relevance_C)):
        worth_C = gain_C - diversity * closest_C if chosen else relevance_C.astype(np.float64)
        worth_C[chosen] = -np.inf
        best = int(np.argmax(worth_C))
        chosen.append(best)
        np.maximum(closest_C, unit_CD @ unit_CD[best], out=closest_C)
    return chosen


def max_sum(relevance_C: Vectors, unit_CD: Vectors, *, k: int, pool: int) -> list[int]:
    """Choose from the `pool` most relevant: the best first, then always the one least like all chosen so far.

    >>> unit = np.array([[1, 0], [1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    >>> max_sum(np.array([0.9, 0.8, 0.7, 0.1], dtype=np.float32), unit, k=2, pool=3)
    [0, 2]
    """
    if pool < 1:
        raise UsageError(f"pool is {pool}, expected at least 1 candidate")
    order = np.argsort(-relevance_C, kind="stable")[: max(pool, k)]
    alike_C = np.zeros(len(order))
    chosen: list[int] = []
    while len(chosen) < min(k, len(order)):
        worth_C = -alike_C
        worth_C[chosen] = -np.inf
        best = int(np.argmax(worth_C))  # nothing chosen yet: all are worth the same, and the first is the most relevant
        chosen.append(best)
        alike_C += unit_CD[order] @ unit_CD[order[best]]
    return [int(order[place]) for place in chosen]
