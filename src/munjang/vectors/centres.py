"""Unit vectors → centres, and each vector's nearest one, by cosine (spherical k-means, Lloyd's steps).

Made for cutting a large collection into parts, where good is enough: few steps over a sample, everything a matrix product. Finding groups
that mean something is left to `analyze`.

Shapes: N vectors, D dimensions, C centres.
"""

from __future__ import annotations

import numpy as np

from munjang.types import Ints, Vectors
from munjang.vectors.similarity import normalize

_BLOCK = 4096


def find_centres(sample_ND: Vectors, count: int, *, steps: int = 8, seed: int = 0) -> Vectors:
    """Return `count` unit vectors around which the sample lies; the same seed gives the same ones.

    >>> find_centres(np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 1]], dtype=np.float32), 2).round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    random = np.random.default_rng(seed)
    count = min(count, len(sample_ND))
    centre_CD = sample_ND[random.choice(len(sample_ND), count, replace=False)]
    for _ in range(steps):
        nearest_N = find_nearest_centre(sample_ND, centre_CD)
        order_N = np.argsort(nearest_N, kind="stable")
        size_C = np.bincount(nearest_N, minlength=count)
        taken_C = np.flatnonzero(size_C)
        begins_C = np.concatenate([[0], np.cumsum(size_C[taken_C])[:-1]])
        # A centre without vectors begins anew somewhere else.
        centre_CD = sample_ND[random.integers(0, len(sample_ND), count)]
        centre_CD[taken_C] = np.add.reduceat(sample_ND[order_N], begins_C, axis=0)
        centre_CD = normalize(centre_CD)
    return centre_CD


def find_nearest_centre(vectors_ND: Vectors, centre_CD: Vectors) -> Ints:
    """Return the number of each vector's nearest centre."""
    nearest_N = np.empty(len(vectors_ND), dtype=np.int64)
    for start in range(0, len(vectors_ND), _BLOCK):
        np.argmax(vectors_ND[start : start + _BLOCK] @ centre_CD.T, axis=1, out=nearest_N[start : start + _BLOCK])
    return nearest_N
