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

from munjang.analyze.topics.reduce import Projection
from munjang.types import Ints, Vectors

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


def nearest(assigner: Assigner, rows_NR: Vectors) -> tuple[Ints, Vectors]:
    """Return the best component of each row and its score; equal scores go to the lower component."""
    component_N = np.zeros(len(rows_NR), dtype=np.int64)
    score_N = np.zeros(len(rows_NR), dtype=np.float32)
    for start in range(0, len(rows_NR), _BLOCK):
        scores_NP = assigner.scores(rows_NR[start : start + _BLOCK])
        best_N = scores_NP.argmax(axis=1)
        component_N[start : start + _BLOCK] = best_N
        score_N[start : start + _BLOCK] = np.take_along_axis(scores_NP, best_N[:, None], axis=1)[:, 0]
    return component_N, score_N
