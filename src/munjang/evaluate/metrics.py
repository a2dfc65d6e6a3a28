"""Pure metrics: lists of numbers or labels → correlation, accuracy, F1, average precision, Matthews correlation, and the best thresholds.

Correlations (Pearson of the values, Spearman of the ranks) equal scipy.stats; where one has no meaning (fewer than two rows, or one side
constant) it is nan, without a warning. Similarities of vectors are float64: `munjang.vectors` answers faster in float32, which is right for
search, but pairs whose cosines differ by one float32 step trade places, and Spearman on 1,379 pairs moves by 1e-5. Equal vectors have a
cosine of exactly 1, so that such pairs tie; a zero vector has cosine 0.

For labels, a higher score always means "more likely 1"; hand distances in negated. Thresholds are those of sentence-transformers' binary
evaluator: half-way between the last score that is called 1 and the next one. Rules for poor input, never a warning: no rows → nan; no
positive label → F1 and average precision are nan; a constant prediction → Matthews correlation 0, as in scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.evaluate.inputs import FloatArray, IntArray, check_aligned, check_binary, check_numbers, check_same_length
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


@dataclass(frozen=True)
class BestAccuracy:
    """The highest accuracy that one threshold on the score can reach: score ≥ threshold is called 1."""

    accuracy: float
    threshold: float


@dataclass(frozen=True)
class BestF1:
    """The highest F1 that one threshold on the score can reach: score ≥ threshold is called 1."""

    f1: float
    precision: float
    recall: float
    threshold: float


def accuracy(predicted: Sequence[object], gold: Sequence[object]) -> float:
    """Return the share of predictions that equal the gold label, or nan without rows.

    >>> accuracy(["a", "b"], ["a", "c"])
    0.5
    """
    check_same_length(predicted, gold, names=("predictions", "labels"))
    if not len(gold):
        return math.nan
    return sum(p == g for p, g in zip(predicted, gold, strict=True)) / len(gold)


def macro_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return the mean F1 over every label that occurs on either side, or nan without rows.

    >>> macro_f1(["a", "b"], ["a", "b"])
    1.0
    """
    check_same_length(predicted, gold, names=("predictions", "labels"))
    if not len(gold):
        return math.nan
    labels = sorted(set(predicted) | set(gold))
    p, g = np.asarray(predicted), np.asarray(gold)
    return float(np.mean([2 * ((p == x) & (g == x)).sum() / ((p == x).sum() + (g == x).sum()) for x in labels]))


def matthews(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Return Matthews' correlation of two 0/1 lists; 0 where one of them is constant.

    >>> matthews([1, 0, 1], [1, 0, 1])
    1.0
    """
    p, g = check_binary(predicted, name="predictions"), check_binary(gold)
    check_same_length(p, g, names=("predictions", "labels"))
    if not g.size:
        return math.nan
    n, both = g.size, int((p & g).sum())
    positive, truth = int(p.sum()), int(g.sum())
    spread = math.sqrt(float(positive * (n - positive)) * float(truth * (n - truth)))
    return (both * n - positive * truth) / spread if spread > 0 else 0.0


def average_precision(scores: ArrayLike, gold: ArrayLike) -> float:
    """Return the step-wise area under precision and recall, or nan without a positive label.

    >>> average_precision([0.9, 0.2, 0.1], [1, 0, 1])
    0.8333333333333333
    """
    s, g = _check_scores(scores, gold)
    total = int(g.sum())
    if not total:
        return math.nan
    _, called, correct = _list_cuts(s, g)
    gained = np.diff(correct, prepend=0)
    return float((gained * (correct / called)).sum() / total)


def best_accuracy(scores: ArrayLike, gold: ArrayLike) -> BestAccuracy:
    """Return the accuracy at the best threshold; calling nothing 1 is among the choices."""
    s, g = _check_scores(scores, gold)
    if not g.size:
        return BestAccuracy(math.nan, math.nan)
    values, called, correct = _list_cuts(s, g)
    negatives = g.size - int(g.sum())
    right = correct + negatives - (called - correct)
    best = int(np.argmax(right))
    if right[best] <= negatives:
        return BestAccuracy(negatives / g.size, float(np.nextafter(values[0], np.inf)))
    return BestAccuracy(float(right[best] / g.size), _choose_threshold(values, best))


def best_f1(scores: ArrayLike, gold: ArrayLike) -> BestF1:
    """Return F1, precision and recall at the threshold with the highest F1, or nan without a positive label."""
    s, g = _check_scores(scores, gold)
    total = int(g.sum())
    if not total:
        return BestF1(math.nan, math.nan, math.nan, math.nan)
    values, called, correct = _list_cuts(s, g)
    best = int(np.argmax(2 * correct / (called + total)))
    return BestF1(
        f1=float(2 * correct[best] / (called[best] + total)),
        precision=float(correct[best] / called[best]),
        recall=float(correct[best] / total),
        threshold=_choose_threshold(values, best),
    )


def f1_at(scores: ArrayLike, gold: ArrayLike, *, threshold: float) -> float:
    """Return F1 when score ≥ threshold is called 1; nan without a positive label.

    >>> f1_at([0.9, 0.4], [1, 1], threshold=0.5)
    0.6666666666666666
    """
    s, g = _check_scores(scores, gold)
    called = s >= threshold
    return float(2 * (called & (g == 1)).sum() / (called.sum() + g.sum())) if g.sum() else math.nan


def _check_scores(scores: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, IntArray]:
    s, g = check_numbers(scores, name="scores"), check_binary(gold)
    check_same_length(s, g, names=("scores", "labels"))
    return s, g


def _list_cuts(scores: FloatArray, gold: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Every distinct score from high to low, and how many rows are at or above it: all, and truly 1."""
    order = np.argsort(-scores, kind="stable")
    s, g = scores[order], gold[order]
    last = np.flatnonzero(np.append(s[1:] != s[:-1], True))
    return s[last], last + 1, np.cumsum(g)[last]


def _choose_threshold(values: FloatArray, at: int) -> float:
    """A threshold that calls values[: at + 1] and nothing below."""
    if at == len(values) - 1:
        return float(values[at])
    middle = float(values[at] / 2 + values[at + 1] / 2)
    return float(values[at]) if middle <= values[at + 1] else middle
