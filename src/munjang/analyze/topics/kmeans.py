"""Unit rows → k groups around k centres (spherical k-means), the same on every run.

Starts are drawn as k-means++ does, from a seed; the best of a few starts is kept. Written out here because scikit-learn adds up partial
sums in whatever order its threads end.

Shapes: N rows, R dimensions, K centres.
"""

from __future__ import annotations

import numpy as np

from munjang.analyze.topics.reduce import unit_rows
from munjang.types import Ints, Vectors

STARTS, ROUNDS = 4, 100


def kmeans(rows_NR: Vectors, k: int, *, seed: int = 0) -> Ints:
    """Return the group of each row, 0 to k − 1; fewer groups where there are fewer different rows."""
    random = np.random.default_rng(seed)
    best_N, best = np.zeros(len(rows_NR), dtype=np.int64), -np.inf
    for _ in range(STARTS):
        labels_N, total = _settle(rows_NR, _start(rows_NR, k, random))
        if total > best + 1e-6:
            best_N, best = labels_N, total
    return best_N


def centres(rows_NR: Vectors, labels_N: Ints, k: int) -> Vectors:
    """Return the mean direction of each group, (K, R); a group without rows has zeros."""
    sums_KR = np.zeros((k, rows_NR.shape[1]))
    order = np.argsort(labels_N, kind="stable")
    order = order[labels_N[order] >= 0]
    found, first = np.unique(labels_N[order], return_index=True)
    if len(found):
        sums_KR[found] = np.add.reduceat(rows_NR[order].astype(np.float64), first, axis=0)
    return unit_rows(sums_KR.astype(np.float32))


def _start(rows_NR: Vectors, k: int, random: np.random.Generator) -> Vectors:
    chosen = [int(random.integers(len(rows_NR)))]
    away_N = np.maximum(1 - rows_NR @ rows_NR[chosen[0]], 0).astype(np.float64)
    while len(chosen) < k and away_N.sum() > 1e-6:
        place = np.searchsorted(np.cumsum(away_N), random.random() * away_N.sum())
        chosen.append(min(int(place), len(rows_NR) - 1))
        away_N = np.minimum(away_N, np.maximum(1 - rows_NR @ rows_NR[chosen[-1]], 0))
    return rows_NR[chosen]


def _settle(rows_NR: Vectors, centres_KR: Vectors) -> tuple[Ints, float]:
    labels_N = np.full(len(rows_NR), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        scores_NK = rows_NR @ centres_KR.T
        now_N = scores_NK.argmax(axis=1)
        if (now_N == labels_N).all():
            break
        labels_N = now_N
        centres_KR = centres(rows_NR, labels_N, len(centres_KR))
    return labels_N, float((rows_NR @ centres_KR.T).max(axis=1).sum(dtype=np.float64))
