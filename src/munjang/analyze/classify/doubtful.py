"""A fitted classifier → the labels of its examples that are probably wrong, and how its quality grows with the number of examples.

A label is doubtful where classifiers that had not seen the row are sure of another one. People look at these rows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.classify.classifier import NO_LABEL, TextClassifier
from munjang.analyze.classify.fitting import find_repeats, find_vectors, fit_classifier, make_folds
from munjang.analyze.classify.labels import Multi, label_rows
from munjang.errors import InputError, UsageError
from munjang.types import Encoder, Vectors
from munjang.wording import brief_repr

CURVE_ROUNDS = 5
"""How often the examples of a learning curve are drawn."""
CURVE_FOLDS = 3
"""One of them is measured on; equal and nearly equal texts are in the same one."""


@brief_repr
@dataclass(frozen=True)
class DoubtfulLabel:
    """One example whose label is probably wrong."""

    row: int
    given: str | None
    """Its label; None where one is missing, which texts with several labels may lack."""
    suggested: str | None
    """The label that the other examples suggest; None where a label should go."""
    doubt: float
    """From 0 to 1: the probability that the label is another one. It ranks better than how much likelier the suggestion is: a row that
    could have several other labels is no less wrong."""


def find_doubtful(classifier: TextClassifier, *, top: int | None = None) -> list[DoubtfulLabel]:
    """Return the examples that held-out predictions contradict, the most doubtful first."""
    held = classifier.held_out
    against = held.given_N != held.best_N
    doubt = 1 - held.given_probability_N
    if classifier.multi:
        doubt = np.where(held.best_N == NO_LABEL, 1 - 2 * held.confidence_N, 2 * held.confidence_N - 1)
    order = np.flatnonzero(against)[np.argsort(-doubt[against], kind="stable")]

    def name(label: int) -> str | None:
        return None if label == NO_LABEL else classifier.labels[label]

    return [
        DoubtfulLabel(int(held.row_N[at]), name(held.given_N[at]), name(held.best_N[at]), round(float(doubt[at]), 6)) for at in order[:top]
    ]


@dataclass(frozen=True)
class CurvePoint:
    """The quality with so many examples of each label."""

    examples: int
    macro_f1: float
    deviation: float
    """The standard deviation over draws."""
    accuracy: float


def draw_learning_curve(
    texts: Sequence[str],
    labels: object,
    encoder: Encoder | None = None,
    *,
    sizes: Sequence[int],
    multi: Multi = False,
    seed: int = 0,
    vectors: ArrayLike | None = None,
) -> Iterator[CurvePoint]:
    """Yield the quality on held-out rows with so many examples of each label, for each size; sizes that no label has are left out."""
    if not sizes or any(size < 1 for size in sizes):
        raise UsageError(f"the curve is asked for at {list(sizes)}, expected numbers of examples, at least 1 each")
    target_NC = label_rows(labels, len(texts), multi=multi).target_NC
    rows_ND = find_vectors(texts, encoder, vectors)
    fold_N = make_folds(target_NC, find_repeats(texts, rows_ND, target_NC).group_N, seed=seed, folds=CURVE_FOLDS)
    test, pool = np.flatnonzero(fold_N == 0), np.flatnonzero(fold_N != 0)
    if not len(test):
        raise InputError("no label has two examples, so nothing can be held out to measure a curve on")
    random = np.random.default_rng(seed)
    for size in sorted(set(sizes)):
        if size > target_NC[pool].sum(axis=0).max():
            continue
        scores = []
        for _ in range(CURVE_ROUNDS):
            order = random.permutation(pool)
            drawn = np.unique(np.concatenate([order[has_N][:size] for has_N in target_NC[order].T]))
            given = give_numbers(target_NC[drawn], multi=multi)
            fitted = fit_classifier([texts[row] for row in drawn], given, multi=multi, vectors=rows_ND[drawn], seed=seed)
            scores.append(_rate(predict_rows(fitted, rows_ND[test], target_NC.shape[1]), target_NC[test]))
        f1, accuracy = (np.array(each) for each in zip(*scores, strict=True))
        yield CurvePoint(int(size), float(f1.mean()), float(f1.std()), float(accuracy.mean()))


def give_numbers(target_NC: NDArray[np.bool_], *, multi: bool) -> list[Any]:
    """Return the labels of rows as `fit_classifier` takes them, each called by its number."""
    sets = [np.flatnonzero(row_C).tolist() for row_C in target_NC]
    return sets if multi else [label for (label,) in sets]


def predict_rows(fitted: TextClassifier, rows_ND: Vectors, labels: int) -> NDArray[np.bool_]:
    """Return which labels rows get from a classifier whose labels are called by their numbers."""
    scores_NC = fitted.head.scores(rows_ND)
    best_NC = np.zeros((len(rows_ND), labels), dtype=bool)
    columns_C = np.array([int(name) for name in fitted.labels])
    if fitted.multi:
        best_NC[:, columns_C] = scores_NC >= 0  # a probability of a half, whatever the temperature
    else:
        best_NC[np.arange(len(rows_ND)), columns_C[scores_NC.argmax(axis=1)]] = True
    return best_NC


def _rate(best_NC: NDArray[np.bool_], gold_NC: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the mean F1 of labels that occur on either side, and the share of rows that are all right."""
    both_C = best_NC.sum(axis=0) + gold_NC.sum(axis=0)
    f1_C = 2 * (best_NC & gold_NC).sum(axis=0) / np.maximum(both_C, 1)
    return float(f1_C[both_C > 0].mean()), float((best_NC == gold_NC).all(axis=1).mean())
