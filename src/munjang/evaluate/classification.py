"""Scores or predictions against labels → accuracy, F1, average precision, Matthews correlation, and the thresholds that do best.

A higher score always means "more likely 1"; hand distances in negated. Thresholds are those of sentence-transformers' binary evaluator:
half-way between the last score that is called 1 and the next one. Rules for poor input, never a warning: no rows → nan; no positive
label → F1 and average precision are nan; a constant prediction → Matthews correlation 0, as in scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.evaluate.inputs import FloatArray, IntArray, check_binary, check_numbers, check_same_length


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
