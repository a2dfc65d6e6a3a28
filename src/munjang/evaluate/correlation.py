"""Two lists of numbers → one correlation: Pearson of the values, Spearman of the ranks.

Both equal scipy.stats. Where a correlation has no meaning (fewer than two rows, or one side constant) the answer is nan, without a warning.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from munjang.evaluate.inputs import FloatArray, aligned, numbers


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return the linear correlation of x and y, or nan where one side is constant.

    >>> round(pearson([1, 2, 3], [1, 2, 4]), 4)
    0.982
    """
    left, right = aligned(x, y, names=("x", "y"))
    return _correlate(left, right)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return the correlation of the ranks of x and y, or nan where one side is constant.

    >>> spearman([1, 2, 3], [1, 20, 400])
    1.0
    """
    left, right = aligned(x, y, names=("x", "y"))
    return _correlate(ranks(left), ranks(right))


def ranks(values: ArrayLike) -> FloatArray:
    """Return ranks from 1, ties sharing their average rank.

    >>> ranks([10, 30, 10])
    array([1.5, 3. , 1.5])
    """
    array = numbers(values, name="values")
    _, group, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    result: FloatArray = (last - (counts - 1) / 2)[group]
    return result


def _correlate(x: FloatArray, y: FloatArray) -> float:
    if x.size < 2 or np.all(x == x[0]) or np.all(y == y[0]):
        return math.nan
    # Scaled before squaring, so that tiny or huge values neither vanish nor overflow.
    return float(np.clip(_direction(x) @ _direction(y), -1.0, 1.0))


def _direction(x: FloatArray) -> FloatArray:
    """Return the centred values at length 1; of values that are not all equal, some stay apart from their mean."""
    scale = np.abs(x).max()
    centred = x / scale - (x / scale).mean()
    return np.asarray(centred / np.linalg.norm(centred))
