"""Texts of many lengths → batches for the engine.

Batches are planned over lengths alone: sorted, then cut at a token budget, and cut where the length changes as soon as a batch is large
enough to be efficient, so that most batches hold texts of one length. Where lengths mix, the grid of texts × longest stays within
`GRID_FACTOR` budgets, because attention pays for its empty places. The plan says which texts go together; results are put back in the
caller's order by index.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.limits import LIMITS

GRID_FACTOR = 2


def plan_batches(lengths: Sequence[int], *, budget: int = LIMITS.batch_tokens, efficient: int = LIMITS.efficient_tokens) -> list[list[int]]:
    """Return groups of indices, longest texts first; each holds at most `budget` tokens, or a single text.

    >>> plan_batches([3, 9, 3, 3], budget=9, efficient=3)
    [[1], [0, 2, 3]]
    """
    batches: list[list[int]] = []
    current: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length = lengths[index]
        changes = bool(current) and length != lengths[current[-1]]
        wide = bool(current) and (len(current) + 1) * lengths[current[0]] > GRID_FACTOR * budget
        if current and (tokens + length > budget or wide or (changes and tokens >= efficient)):
            batches.append(current)
            current, tokens = [], 0
        current.append(index)
        tokens += length
    if current:
        batches.append(current)
    return batches
