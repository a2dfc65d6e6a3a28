"""A question, things one likes and things one does not → one vector to search with (Rocchio, 1971).

vector = query·q + like·mean(liked) − unlike·mean(unliked), of unit vectors, at unit length. Without a question it is a recommendation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError
from munjang.library.matrix import unit
from munjang.types import Vectors


@dataclass(frozen=True)
class Rocchio:
    """The weight of each part."""

    query: float = 1.0
    like: float = 0.75
    unlike: float = 0.25


def blend(query_D: Vectors | None, liked_ND: Vectors, unliked_ND: Vectors, *, weights: Rocchio) -> Vectors:
    """Return the unit vector that is near what is wanted and away from what is not.

    >>> blend(None, np.eye(2, dtype=np.float32)[:1], np.eye(2, dtype=np.float32)[1:], weights=Rocchio(like=1, unlike=1)).round(2).tolist()
    [0.7099999785423279, -0.7099999785423279]
    """
    parts = [weights.query * unit(query_D)] if query_D is not None else []
    if len(liked_ND):
        parts.append(weights.like * unit(liked_ND).mean(axis=0))
    if len(unliked_ND):
        parts.append(-weights.unlike * unit(unliked_ND).mean(axis=0))
    total_D = np.sum(parts, axis=0).astype(np.float32)
    if not np.linalg.norm(total_D) > 1e-6:
        raise InputError("what is liked and what is not cancel each other out, expected something that is left to look for")
    return unit(total_D)
