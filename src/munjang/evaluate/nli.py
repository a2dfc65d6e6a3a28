"""Natural language inference: predicted labels, or a classifier's scores, against gold labels → accuracy, macro F1 and the confusion table.

Comes in: label names, or a Scorer whose rows have one number per label in a stated order. No order is assumed: models differ in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from munjang.data.rows import LabelledPair
from munjang.errors import InputError, quote
from munjang.evaluate.bootstrap import RESAMPLES, Interval, Resamples, bootstrap_interval, resample_mean, to_jsonable
from munjang.evaluate.inputs import check_rows, check_same_length
from munjang.evaluate.metrics import accuracy, macro_f1
from munjang.options import check_options
from munjang.types import Scorer, check_scorer
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class NliResult:
    """What a classifier scores; `confusion[gold][predicted]` counts pairs."""

    n: int
    accuracy: float
    macro_f1: float
    ci95: dict[str, Interval]
    confusion: dict[str, dict[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return dict(to_jsonable(self))


def evaluate_nli(
    scorer: Scorer, pairs: Sequence[LabelledPair], *, labels: Sequence[str], resamples: Resamples = RESAMPLES, seed: int = 0
) -> NliResult:
    """Return the scores of a cross-encoder or pair classifier; `labels` names its outputs in order."""
    check_options(evaluate_nli, locals())
    pairs = check_rows(pairs, LabelledPair, name="pairs")
    predicted = predict_labels(scorer, pairs, labels=labels)
    return score_nli(predicted, [pair.label for pair in pairs], resamples=resamples, seed=seed)


def predict_labels(scorer: Scorer, pairs: Sequence[LabelledPair], *, labels: Sequence[str]) -> list[str]:
    """Return the label that a model gives each pair; gold labels that it does not have are refused by file and line."""
    check_scorer(scorer)
    if not pairs:
        raise InputError("no pairs to evaluate")
    unknown = next((pair for pair in pairs if pair.label not in labels), None)
    if unknown is not None:
        raise InputError(f"{unknown.where or 'pairs'}: the label {quote(unknown.label)} is none of the model's: {', '.join(labels)}")
    return choose_labels(scorer.predict([(pair.a, pair.b) for pair in pairs]), labels)


def mark_right(scorer: Scorer, pairs: Sequence[LabelledPair], *, labels: Sequence[str]) -> list[float]:
    """Return 1 for each pair whose label a model predicts, 0 for the others."""
    predicted = predict_labels(scorer, pairs, labels=labels)
    return [float(label == pair.label) for label, pair in zip(predicted, pairs, strict=True)]


def score_nli(predicted: Sequence[str], gold: Sequence[str], *, resamples: Resamples = RESAMPLES, seed: int = 0) -> NliResult:
    """Return the scores of labels already predicted. resamples=0 leaves the interval out."""
    check_same_length(predicted, gold, names=("predictions", "labels"))
    right = np.asarray([p == g for p, g in zip(predicted, gold, strict=True)], dtype=np.float64)
    names = sorted(set(gold) | set(predicted))
    confusion = {name: dict.fromkeys(names, 0) for name in names}
    for p, g in zip(predicted, gold, strict=True):
        confusion[g][p] += 1
    ci95 = {"accuracy": bootstrap_interval(resample_mean(right), right.size, resamples=resamples, seed=seed)} if resamples else {}
    return NliResult(len(gold), accuracy(predicted, gold), macro_f1(predicted, gold), ci95, confusion)


def choose_labels(logits: ArrayLike, labels: Sequence[str]) -> list[str]:
    """Return the name of the highest number of each row, the first on ties.

    >>> choose_labels([[0.1, 0.9], [2.0, 1.0]], ["no", "yes"])
    ['yes', 'no']
    """
    rows = np.asarray(logits, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise InputError(f"scores of shape {rows.shape}, expected one row per pair with {len(labels)} numbers ({', '.join(labels)})")
    if not np.isfinite(rows).all():
        raise InputError("scores hold NaN or infinity, expected finite numbers")
    return [labels[column] for column in rows.argmax(axis=1)]
