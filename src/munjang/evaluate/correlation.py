"""Two lists of numbers → one correlation (Pearson of the values, Spearman of the ranks); two arrays of vectors → each row's similarity.

Correlations equal scipy.stats; where one has no meaning (fewer than two rows, or one side constant) it is nan, without a warning.
Similarities are float64: `munjang.vectors` answers faster in float32, which is right for search, but pairs whose cosines differ by one
float32 step trade places, and Spearman on 1,379 pairs moves by 1e-5. Equal vectors have a cosine of exactly 1, so that such pairs tie; a
zero vector has cosine 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from munjang.evaluate.inputs import FloatArray, check_aligned, check_numbers, check_same_length
from munjang.types import Metric, Vectors
from munjang.vectors.similarity import check_metric, check_same_dimension, to_rows


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return the linear correlation of x and y, or nan where one side is constant.

    >>> round(pearson([1, 2, 3], [1, 2, 4]), 4)
    0.982
    """
    left, right = check_aligned(x, y, names=("x", "y"))
    return _correlate(left, right)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return the correlation of the ranks of x and y, or nan where one side is constant.

    >>> spearman([1, 2, 3], [1, 20, 400])
    1.0
    """
    left, right = check_aligned(x, y, names=("x", "y"))
    return _correlate(rank_values(left), rank_values(right))


def rank_values(values: ArrayLike) -> FloatArray:
    """Return ranks from 1, ties sharing their average rank.

    >>> rank_values([10, 30, 10])
    array([1.5, 3. , 1.5])
    """
    array = check_numbers(values, name="values")
    _, group, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    result: FloatArray = (last - (counts - 1) / 2)[group]
    return result


def _correlate(x: FloatArray, y: FloatArray) -> float:
    if x.size < 2 or np.all(x == x[0]) or np.all(y == y[0]):
        return math.nan
    # Scaled before squaring, so that tiny or huge values neither vanish nor overflow.
    return float(np.clip(_scale_to_unit(x) @ _scale_to_unit(y), -1.0, 1.0))


def _scale_to_unit(x: FloatArray) -> FloatArray:
    """Return the centred values at length 1; of values that are not all equal, some stay apart from their mean."""
    scale = np.abs(x).max()
    centred = x / scale - (x / scale).mean()
    return np.asarray(centred / np.linalg.norm(centred))


_BLOCK = 4_096


def pair_similarities(a: Vectors, b: Vectors, *, metric: Metric = "cosine") -> FloatArray:
    """Return one float64 number per row, higher meaning nearer; Euclidean and Manhattan are negative distances.

    >>> pair_similarities(np.array([[3, 4], [1, 0]]), np.array([[3, 4], [0, 1]])).tolist()
    [1.0, 0.0]
    """
    check_metric(metric)
    left, right = to_rows(a, "vectors a"), to_rows(b, "vectors b")
    check_same_length(left, right, names=("vectors a", "vectors b"))
    check_same_dimension(left, right, "vectors a", "vectors b")
    result = np.empty(len(left))
    for start in range(0, len(left), _BLOCK):
        rows = slice(start, start + _BLOCK)
        result[rows] = _measure_block(left[rows].astype(np.float64), right[rows].astype(np.float64), metric)
    return result


def _measure_block(a_ND: FloatArray, b_ND: FloatArray, metric: Metric) -> FloatArray:
    result_N: FloatArray
    if metric == "euclidean":
        result_N = -np.linalg.norm(a_ND - b_ND, axis=1)
    elif metric == "manhattan":
        result_N = -np.abs(a_ND - b_ND).sum(axis=1)
    else:
        result_N = np.einsum("nd,nd->n", a_ND, b_ND)
    if metric == "cosine":
        # sqrt(|a|² × |b|²) rather than |a| × |b|: for equal rows it is |a|² again, to the last bit.
        lengths_N = np.sqrt(np.einsum("nd,nd->n", a_ND, a_ND) * np.einsum("nd,nd->n", b_ND, b_ND))
        np.divide(result_N, lengths_N, out=result_N, where=lengths_N > 0)
    return result_N
