"""Predicted labels and probabilities against gold labels → accuracy, F1, confusion, calibration, intervals, and a paired comparison.

Comes in: one row of probabilities per text, the names of the columns, and the gold labels. A gold label that the classifier does not know
counts as an error. All rows are resampled together, so that intervals of accuracy and macro-F1 belong to the same resamples.

Shapes: N texts, C labels, B resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError
from munjang.evaluate.bootstrap import (
    Interval,
    PairedDifference,
    Resampled,
    bootstrap_intervals,
    paired_bootstrap,
    resample_mean,
    to_jsonable,
)
from munjang.evaluate.inputs import FloatArray, IntArray
from munjang.wording import brief_repr, count

BINS = 15
RESAMPLES = 2_000


@dataclass(frozen=True)
class LabelQuality:
    """How well one label is found."""

    label: str
    precision: float
    """NaN where it was never predicted."""
    recall: float
    """NaN where no text has it."""
    f1: float
    texts: int
    predicted: int


@dataclass(frozen=True)
class CalibrationBin:
    """Answers of about the same probability: how many there are, what they claim and how often they are right."""

    texts: int
    confidence: float
    accuracy: float


@brief_repr
@dataclass(frozen=True)
class LabelReport:
    """What a classifier is worth on labelled texts."""

    n: int
    accuracy: float
    macro_f1: float
    ece: float
    """The expected calibration error: how far probabilities are from the share of right answers, over 15 bins."""
    accuracy_ci95: Interval
    macro_f1_ci95: Interval
    labels: tuple[LabelQuality, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Rows are gold labels, columns predictions, both in the order of `labels`."""
    calibration: tuple[CalibrationBin, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON can hold it."""
        facts: dict[str, Any] = to_jsonable(self)
        return facts


def evaluate_labels(
    probabilities: ArrayLike, names: Sequence[str], gold: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0
) -> LabelReport:
    """Return how well the likeliest labels agree with the gold ones, and how honest the probabilities are.

    >>> evaluate_labels([[0.9, 0.1], [0.2, 0.8]], ["a", "b"], ["a", "b"], resamples=10).macro_f1
    1.0
    """
    table_NC = _check_table(probabilities, names, len(gold))
    labels, gold_N, best_N = _number_labels(table_NC, names, gold)
    confidence_N = table_NC.max(axis=1)
    correct_N = (gold_N == best_N).astype(np.float64)
    confusion_CC = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion_CC, (gold_N, best_N), 1)
    statistics = {"accuracy": resample_mean(correct_N), "macro_f1": resample_macro_f1(best_N, gold_N, len(labels))}
    intervals = bootstrap_intervals(statistics, len(gold), resamples=resamples, seed=seed)
    bins = make_calibration_bins(confidence_N, correct_N)
    return LabelReport(
        len(gold),
        float(correct_N.mean()),
        float(statistics["macro_f1"](np.ones((1, len(gold))))[0]),
        float(sum(each.texts * abs(each.confidence - each.accuracy) for each in bins) / len(gold)),
        intervals["accuracy"],
        intervals["macro_f1"],
        _rate_labels(labels, confusion_CC),
        tuple(tuple(int(cell) for cell in row) for row in confusion_CC),
        bins,
    )


def compare_labels(
    a: ArrayLike,
    a_names: Sequence[str],
    b: ArrayLike,
    b_names: Sequence[str],
    gold: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, PairedDifference]:
    """Return how much classifier a beats b in accuracy and macro-F1, both on the same resampled texts."""
    tables = [_check_table(each, names, len(gold)) for each, names in ((a, a_names), (b, b_names))]
    labels = sorted({*a_names, *b_names, *gold})
    place = {name: number for number, name in enumerate(labels)}
    gold_N = np.array([place[name] for name in gold], dtype=np.int64)
    best = [
        np.array([place[name] for name in names], dtype=np.int64)[table_NC.argmax(axis=1)]
        for table_NC, names in zip(tables, (a_names, b_names), strict=True)
    ]
    one_N, other_N = (each.astype(np.float64) for each in best)

    def macro_f1(scores_N: FloatArray) -> Resampled:
        return resample_macro_f1(scores_N.astype(np.int64), gold_N, len(labels))

    return {
        "accuracy": paired_bootstrap(one_N == gold_N, other_N == gold_N, resample_mean, resamples=resamples, seed=seed),
        "macro_f1": paired_bootstrap(one_N, other_N, macro_f1, resamples=resamples, seed=seed),
    }


def make_calibration_bins(confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> tuple[CalibrationBin, ...]:
    """Return the bins of equal width that hold answers.

    >>> make_calibration_bins([0.9, 0.91], [1, 0])
    (CalibrationBin(texts=2, confidence=0.905, accuracy=0.5),)
    """
    confidence_N, correct_N = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    place_N = np.clip(np.ceil(confidence_N * bins).astype(np.int64) - 1, 0, bins - 1)
    found = []
    for place in np.unique(place_N):
        inside = place_N == place
        found.append(CalibrationBin(int(inside.sum()), float(confidence_N[inside].mean()), float(correct_N[inside].mean())))
    return tuple(found)


def resample_macro_f1(best_N: IntArray, gold_N: IntArray, labels: int) -> Resampled:
    """Make the resampled macro-F1: the mean over labels that occur in a resample on either side."""
    right_N = best_N == gold_N

    def resampled(counts_BN: FloatArray) -> FloatArray:
        values = []
        for counts_N in counts_BN:
            right = np.bincount(best_N[right_N], weights=counts_N[right_N], minlength=labels)
            both = np.bincount(best_N, weights=counts_N, minlength=labels) + np.bincount(gold_N, weights=counts_N, minlength=labels)
            values.append(float((2 * right[both > 0] / both[both > 0]).mean()))
        return np.asarray(values)

    return resampled


def _number_labels(table_NC: FloatArray, names: Sequence[str], gold: Sequence[str]) -> tuple[list[str], IntArray, IntArray]:
    """Return all labels, the classifier's first; and the gold and the predicted label of each text."""
    labels = [*names, *sorted(set(gold) - set(names))]
    place = {name: number for number, name in enumerate(labels)}
    return labels, np.array([place[name] for name in gold], dtype=np.int64), table_NC.argmax(axis=1).astype(np.int64)


def _rate_labels(labels: Sequence[str], confusion_CC: NDArray[np.int64]) -> tuple[LabelQuality, ...]:
    right_C, texts_C, predicted_C = confusion_CC.diagonal(), confusion_CC.sum(axis=1), confusion_CC.sum(axis=0)
    rated = []
    for place, label in enumerate(labels):
        right, texts, predicted = int(right_C[place]), int(texts_C[place]), int(predicted_C[place])
        precision = right / predicted if predicted else float("nan")
        recall = right / texts if texts else float("nan")
        f1 = 2 * right / (texts + predicted) if texts + predicted else float("nan")
        rated.append(LabelQuality(label, precision, recall, f1, texts, predicted))
    return tuple(rated)


def _check_table(probabilities: ArrayLike, names: Sequence[str], rows: int) -> FloatArray:
    table_NC = np.asarray(probabilities, dtype=np.float64)
    if table_NC.ndim != 2 or table_NC.shape[1] != len(names):
        raise InputError(f"probabilities of shape {table_NC.shape} for {count(len(names), 'label')}, expected one column for each label")
    if len(table_NC) != rows or not rows:
        raise InputError(f"{count(len(table_NC), 'prediction')} against {count(rows, 'gold label')}, expected one for each, at least one")
    return table_NC
