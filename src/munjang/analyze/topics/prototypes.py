"""A vector → the nearest of a few centres, in the space of a projection.

This is how every document gets its topic, those that the topics were made of included: what a fitted model says and what a saved one says
of the same vector are the answers of the same function. Several centres may stand for one topic, so that topics can be merged
without moving any other document.

Shapes: N rows, D dimensions, R reduced dimensions, P prototypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.topics.groups import Projection
from munjang.types import Floats, Ints, Vectors

FENCE = 1.5
NO_FLOOR = -2.0
"""Below every cosine."""


def find_outlier_floors(
    component_N: Ints, score_N: Floats, prototypes: int, *, share: float, core_N: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return each prototype's floor, such that at most `share` of the documents lie below theirs.

    `core_N` says which documents set the norm; without it, all do.
    """
    low_P, spread_P = np.zeros(prototypes), np.zeros(prototypes)
    for prototype in range(prototypes):
        held = component_N == prototype
        typical = score_N[held & core_N] if core_N is not None and (held & core_N).any() else score_N[held]
        if len(typical):
            low, high = np.quantile(typical.astype(np.float64), [0.25, 0.75])
            low_P[prototype], spread_P[prototype] = low, max(high - low, 1e-4)
    depth_N = (low_P[component_N] - score_N) / spread_P[component_N] if len(component_N) else np.zeros(0)
    floors: NDArray[np.float64] = low_P - _find_fence(depth_N, int(share * len(depth_N))) * spread_P
    return np.maximum(floors, NO_FLOOR)


def _find_fence(depth_N: Floats, allowed: int) -> float:
    deepest = np.sort(depth_N)[::-1]
    if allowed >= len(deepest):
        return FENCE
    beyond = float(deepest[allowed])
    # Half-way between two documents, so that no document lies on the fence.
    clear = beyond + 1.0 if allowed == 0 else (beyond + float(deepest[allowed - 1])) / 2
    return max(FENCE, clear)


_BLOCK = 8_192  # rows scored at once


class Assigner(Protocol):
    """Turns vectors into features, and features into the nearest component."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        ...

    @property
    def centres_PR(self) -> Vectors:
        """The features that stand for each component."""
        ...

    def features(self, vectors_ND: Vectors, /) -> Vectors:
        """Return what decides, (N, R)."""
        ...

    def scores(self, rows_NR: Vectors, /) -> Vectors:
        """Return how well each row fits each component, (N, P)."""
        ...


@dataclass(frozen=True)
class Prototypes:
    """A projection and unit centres in its space; scores are cosines."""

    projection: Projection
    centres_PR: Vectors

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        return len(self.projection.mean_D)

    def features(self, vectors_ND: Vectors, /) -> Vectors:
        """Return unit rows in the reduced space."""
        return self.projection.apply(vectors_ND)

    def scores(self, rows_NR: Vectors, /) -> Vectors:
        """Return the cosine of each row with each centre."""
        return rows_NR @ self.centres_PR.T


def find_nearest(assigner: Assigner, rows_NR: Vectors) -> tuple[Ints, Vectors]:
    """Return the best component of each row and its score; equal scores go to the lower component."""
    component_N = np.zeros(len(rows_NR), dtype=np.int64)
    score_N = np.zeros(len(rows_NR), dtype=np.float32)
    for start in range(0, len(rows_NR), _BLOCK):
        scores_NP = assigner.scores(rows_NR[start : start + _BLOCK])
        best_N = scores_NP.argmax(axis=1)
        component_N[start : start + _BLOCK] = best_N
        score_N[start : start + _BLOCK] = np.take_along_axis(scores_NP, best_N[:, None], axis=1)[:, 0]
    return component_N, score_N
