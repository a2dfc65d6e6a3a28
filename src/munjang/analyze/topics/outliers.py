"""Scores of documents → the score below which a document has no topic.

A document is an outlier if it fits its prototype far worse than that prototype's other documents do: below the first quartile by more than
1.5 times the distance of the quartiles (Tukey's fence). Where that makes more outliers than may be, the fence is moved out for all
prototypes alike until it does not.

Shapes: N documents, P prototypes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from munjang.types import Floats, Ints

FENCE = 1.5
NO_FLOOR = -2.0
"""Below every cosine."""


def outlier_floors(
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
    floors: NDArray[np.float64] = low_P - _fence(depth_N, int(share * len(depth_N))) * spread_P
    return np.maximum(floors, NO_FLOOR)


def _fence(depth_N: Floats, allowed: int) -> float:
    deepest = np.sort(depth_N)[::-1]
    if allowed >= len(deepest):
        return FENCE
    beyond = float(deepest[allowed])
    # Half-way between two documents, so that no document lies on the fence.
    clear = beyond + 1.0 if allowed == 0 else (beyond + float(deepest[allowed - 1])) / 2
    return max(FENCE, clear)
