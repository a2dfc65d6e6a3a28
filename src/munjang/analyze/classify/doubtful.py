"""A fitted classifier → the labels of its examples that are probably wrong, and how its quality grows with the number of examples.

A label is doubtful where classifiers that had not seen the row are sure of another one. People look at these rows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.classify.classifier import NO_LABEL, TextClassifier
from munjang.analyze.classify.fitting import find_vectors, fit_classifier
from munjang.analyze.classify.labels import label_rows
from munjang.analyze.classify.probability import to_probabilities
from munjang.errors import InputError, UsageError
from munjang.types import Encoder, Ints
from munjang.wording import brief_repr

CURVE_ROUNDS = 5
"""How often the examples of a learning curve are drawn."""
HELD_OUT_SHARE = 0.3
"""The share of rows on which a learning curve is measured."""


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
    seed: int = 0,
    vectors: ArrayLike | None = None,
) -> Iterator[CurvePoint]:
    """Yield the quality on held-out rows with so many examples of each label, for each size; sizes that no label has are left out."""
    if not sizes or any(size < 1 for size in sizes):
        raise UsageError(f"the curve is asked for at {list(sizes)}, expected numbers of examples, at least 1 each")
    labelled = label_rows(labels, len(texts), multi=False)
    rows_ND = find_vectors(texts, encoder, vectors)
    random = np.random.default_rng(seed)
    class_N = labelled.first_N
    test, pool = _split(class_N, random)
    if not len(test):
        raise InputError("no label has two examples, so nothing can be held out to measure a curve on")
    for size in sorted(set(sizes)):
        if size > max(np.bincount(class_N[pool])):
            continue
        scores = []
        for _ in range(CURVE_ROUNDS):
            order = random.permutation(pool)
            drawn = np.concatenate([order[class_N[order] == label][:size] for label in range(len(labelled.names))])
            fitted = fit_classifier([texts[row] for row in drawn], class_N[drawn], vectors=rows_ND[drawn], seed=seed)
            columns = np.array([int(name) for name in fitted.labels])
            best = columns[to_probabilities(fitted.head.scores(rows_ND[test]), 1.0, multi=False).argmax(axis=1)]
            scores.append((_macro_f1(best, class_N[test]), float((best == class_N[test]).mean())))
        f1, accuracy = (np.array(each) for each in zip(*scores, strict=True))
        yield CurvePoint(int(size), float(f1.mean()), float(f1.std()), float(accuracy.mean()))


def _split(class_N: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Return rows to measure on and rows to draw from; every label keeps at least one of its own to learn from."""
    test: list[int] = []
    for label in np.unique(class_N):
        rows = random.permutation(np.flatnonzero(class_N == label))
        test += rows[: min(len(rows) - 1, max(1, round(HELD_OUT_SHARE * len(rows))))].tolist()
    return np.array(sorted(test), dtype=np.int64), np.setdiff1d(np.arange(len(class_N)), test)


def _macro_f1(best: Ints, gold: Ints) -> float:
    used = np.union1d(best, gold)
    return float(
        np.mean([2 * ((best == label) & (gold == label)).sum() / ((best == label).sum() + (gold == label).sum()) for label in used])
    )
