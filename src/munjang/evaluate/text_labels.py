"""Predicted labels and probabilities against gold labels → accuracy, F1, confusion, calibration, intervals, and a paired comparison.

Comes in: one row of probabilities per text, the names of the columns, and the gold labels: one for each text, or a set. A gold label that
the classifier does not know counts as an error. All rows are resampled together, so that intervals of accuracy and F1 belong to the same
resamples.

Shapes: N texts, C labels, B resamples, E pairs of a text and one of its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError
from munjang.evaluate.bootstrap import (
    Interval,
    PairedDifference,
    Resampled,
    bootstrap_intervals,
    compare_resampled,
    resample_mean,
    to_jsonable,
)
from munjang.evaluate.inputs import FloatArray, IntArray
from munjang.tables import Row, Table
from munjang.wording import brief_repr, count

BINS = 15
RESAMPLES = 2_000


@brief_repr
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
class LabelReport(Table):
    """What a classifier is worth on labelled texts."""

    n: int
    accuracy: float
    """The share of texts whose label is right; of several, whose labels are all right and none is missing."""
    micro_f1: float
    """F1 over all pairs of a text and a label; where each text has one, the accuracy."""
    macro_f1: float
    """The mean of the labels' F1."""
    ece: float
    """The expected calibration error: how far probabilities of answers are from the share of right answers, over 15 bins."""
    accuracy_ci95: Interval
    micro_f1_ci95: Interval
    macro_f1_ci95: Interval
    labels: tuple[LabelQuality, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Rows are gold labels, columns predictions, both in the order of `labels`; empty where a text may have several."""
    calibration: tuple[CalibrationBin, ...]

    columns: ClassVar[tuple[str, ...]] = ("label", "precision", "recall", "f1", "texts", "predicted")

    def to_rows(self) -> list[Row]:
        """Return the figures of each label."""
        return [asdict(each) for each in self.labels]

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
    labels = _all_labels(names, gold)
    judged = _judge(_likeliest(table_NC, names, labels), [[name] for name in gold], labels)
    confusion_CC = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion_CC, (judged.gold.label_E, judged.best.label_E), 1)
    return _report(judged, labels, table_NC.max(axis=1), confusion_CC, resamples, seed)


def evaluate_label_sets(
    probabilities: ArrayLike,
    names: Sequence[str],
    gold: Sequence[Iterable[str]],
    *,
    threshold: float,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> LabelReport:
    """Return how well labels whose probability reaches the threshold agree with the gold ones, of which a text may have several or none.

    >>> evaluate_label_sets([[0.9, 0.7], [0.2, 0.8]], ["a", "b"], [["a", "b"], ["b"]], threshold=0.5, resamples=10).accuracy
    1.0
    """
    table_NC = _check_table(probabilities, names, len(gold))
    sets = [set(each) for each in gold]
    labels = _all_labels(names, (name for each in sets for name in each))
    judged = _judge(_likely(table_NC, names, labels, threshold), sets, labels)
    return _report(judged, labels, table_NC[table_NC >= threshold], None, resamples, seed)


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
    tables = [(_check_table(each, names, len(gold)), names) for each, names in ((a, a_names), (b, b_names))]
    labels = _all_labels([], (*a_names, *b_names, *gold))
    judged = [_judge(_likeliest(table_NC, names, labels), [[name] for name in gold], labels) for table_NC, names in tables]
    return _compare(judged, ("accuracy", "macro_f1"), resamples, seed)


def compare_label_sets(
    a: ArrayLike,
    a_names: Sequence[str],
    b: ArrayLike,
    b_names: Sequence[str],
    gold: Sequence[Iterable[str]],
    *,
    threshold: float,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, PairedDifference]:
    """Return how much classifier a beats b in accuracy, micro-F1 and macro-F1, where a text may have several labels or none."""
    tables = [(_check_table(each, names, len(gold)), names) for each, names in ((a, a_names), (b, b_names))]
    sets = [set(each) for each in gold]
    labels = _all_labels([], (*a_names, *b_names, *(name for each in sets for name in each)))
    judged = [_judge(_likely(table_NC, names, labels, threshold), sets, labels) for table_NC, names in tables]
    return _compare(judged, ("accuracy", "micro_f1", "macro_f1"), resamples, seed)


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


@dataclass(frozen=True, eq=False)
class _Entries:
    """Pairs of a text and one of its labels, both as numbers."""

    text_E: IntArray
    label_E: IntArray


@dataclass(frozen=True, eq=False)
class _Judged:
    """What texts have and what they got."""

    texts: int
    labels: int
    gold: _Entries
    best: _Entries
    right_E: NDArray[np.bool_]
    """Of the entries of `best`, which are gold."""

    def statistics(self) -> dict[str, Resampled]:
        """Return accuracy, micro-F1 and macro-F1, each under resampling."""
        right, best, gold = (self._count(each) for each in (self.best.text_E[self.right_E], self.best.text_E, self.gold.text_E))
        whole_N = (right == best) & (right == gold)
        return {"accuracy": resample_mean(whole_N), "micro_f1": _resample_ratio(2 * right, best + gold), "macro_f1": self._macro_f1}

    def _count(self, text_E: IntArray) -> FloatArray:
        return np.bincount(text_E, minlength=self.texts).astype(np.float64)

    def _macro_f1(self, counts_BN: FloatArray) -> FloatArray:
        """Return the mean F1 over labels that occur in a resample on either side."""
        sides = (_Entries(self.best.text_E[self.right_E], self.best.label_E[self.right_E]), self.best, self.gold)
        values = []
        for counts_N in counts_BN:
            right, best, gold = (np.bincount(each.label_E, weights=counts_N[each.text_E], minlength=self.labels) for each in sides)
            used = best + gold > 0
            values.append(float((2 * right[used] / (best + gold)[used]).mean()) if used.any() else np.nan)
        return np.asarray(values)


def _resample_ratio(top: FloatArray, bottom: FloatArray) -> Resampled:
    def resampled(counts_BN: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            ratio_B: FloatArray = (counts_BN @ top) / (counts_BN @ bottom)
        return ratio_B

    return resampled


def _judge(best: _Entries, gold: Sequence[Iterable[str]], labels: Sequence[str]) -> _Judged:
    place = {name: number for number, name in enumerate(labels)}
    pairs = [(text, place[name]) for text, names in enumerate(gold) for name in names]
    text_E, label_E = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    right_E = np.isin(best.text_E * len(labels) + best.label_E, text_E * len(labels) + label_E)
    return _Judged(len(gold), len(labels), _Entries(text_E, label_E), best, right_E)


def _likeliest(table_NC: FloatArray, names: Sequence[str], labels: Sequence[str]) -> _Entries:
    return _Entries(np.arange(len(table_NC)), _columns(names, labels)[table_NC.argmax(axis=1)])


def _likely(table_NC: FloatArray, names: Sequence[str], labels: Sequence[str], threshold: float) -> _Entries:
    text_E, column_E = np.nonzero(table_NC >= threshold)
    return _Entries(text_E, _columns(names, labels)[column_E])


def _columns(names: Sequence[str], labels: Sequence[str]) -> IntArray:
    place = {name: number for number, name in enumerate(labels)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _all_labels(names: Sequence[str], gold: Iterable[str]) -> list[str]:
    """Return all labels, the classifier's first."""
    return [*names, *sorted(set(gold) - set(names))]


def _report(
    judged: _Judged,
    labels: Sequence[str],
    confidence_E: FloatArray,
    confusion_CC: NDArray[np.int64] | None,
    resamples: int,
    seed: int,
) -> LabelReport:
    statistics = judged.statistics()
    once_1N = np.ones((1, judged.texts))
    values = {name: float(statistic(once_1N)[0]) for name, statistic in statistics.items()}
    intervals = bootstrap_intervals(statistics, judged.texts, resamples=resamples, seed=seed)
    bins = make_calibration_bins(confidence_E, judged.right_E)
    gaps = [each.texts * abs(each.confidence - each.accuracy) for each in bins]
    return LabelReport(
        judged.texts,
        values["accuracy"],
        values["micro_f1"],
        values["macro_f1"],
        float(sum(gaps) / len(confidence_E)) if len(confidence_E) else float("nan"),
        intervals["accuracy"],
        intervals["micro_f1"],
        intervals["macro_f1"],
        _rate_labels(judged, labels),
        () if confusion_CC is None else tuple(tuple(int(cell) for cell in row) for row in confusion_CC),
        bins,
    )


def _compare(judged: Sequence[_Judged], names: Sequence[str], resamples: int, seed: int) -> dict[str, PairedDifference]:
    of_a, of_b = (each.statistics() for each in judged)
    return {name: compare_resampled(of_a[name], of_b[name], judged[0].texts, resamples=resamples, seed=seed) for name in names}


def _rate_labels(judged: _Judged, labels: Sequence[str]) -> tuple[LabelQuality, ...]:
    sides = (judged.best.label_E[judged.right_E], judged.gold.label_E, judged.best.label_E)
    rated = []
    for label, right, texts, predicted in zip(labels, *(np.bincount(each, minlength=len(labels)).tolist() for each in sides), strict=True):
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
