"""A TextClassifier: everything that is known of a classifier of texts, and nothing that computes.

One linear function of a text's unit vector scores every label; a temperature turns scores into probabilities. `HeldOut` keeps what
cross-validation said of each example, from which abstention, doubtful labels and the quality are read.

Shapes: N held-out rows, D dimensions, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.classify.logistic import LinearHead
from munjang.analyze.classify.probability import Abstention, choose_threshold
from munjang.types import Ints, Vectors
from munjang.wording import brief_repr

Origin: TypeAlias = Literal["examples", "labels"]
"""What a classifier was made of."""


NO_LABEL = -1


@brief_repr
@dataclass(frozen=True, eq=False)
class HeldOut:
    """What classifiers that had not seen a row said of it; only rows that could be held out.

    A row is one entry. Where texts may have several labels, each label of a row is an entry that was given or predicted; the other of
    both may then be NO_LABEL.
    """

    row_N: Ints
    """The row's place among the examples, from 0."""
    given_N: Ints
    """Its label among the examples."""
    best_N: Ints
    """The label that was predicted."""
    confidence_N: Vectors
    """The probability of the predicted label."""
    given_probability_N: Vectors
    """The probability of the given label."""

    def __len__(self) -> int:
        return len(self.row_N)

    @property
    def correct_N(self) -> NDArray[np.bool_]:
        """Whether the prediction was right."""
        return np.asarray(self.given_N == self.best_N, dtype=bool)

    @property
    def micro_f1(self) -> float:
        """F1 over all rows, which is the accuracy where a row has one label; NaN without rows."""
        labels = int((self.given_N != NO_LABEL).sum() + (self.best_N != NO_LABEL).sum())
        return 2 * float(self.correct_N.sum()) / labels if labels else float("nan")

    @property
    def macro_f1(self) -> float:
        """The mean F1 over labels; NaN without rows."""
        used = np.setdiff1d(np.concatenate([self.given_N, self.best_N]), [NO_LABEL])
        if not len(used):
            return float("nan")
        size = int(used.max()) + 1
        given, best = (np.bincount(each[each != NO_LABEL], minlength=size) for each in (self.given_N, self.best_N))
        right = np.bincount(self.best_N[self.correct_N], minlength=size)
        return float((2 * right / np.maximum(given + best, 1))[used].mean())


@brief_repr
@dataclass(frozen=True, eq=False)
class TextClassifier:
    """Labels, the function that scores them, and how sure its answers are."""

    labels: tuple[str, ...]
    head: LinearHead
    temperature: float
    multi: bool
    """A text may have several labels or none."""
    made_of: Origin
    strength: float
    """How little the weights were held back; 0 for a classifier made of labels."""
    examples_C: Ints
    """How many examples each label had."""
    held_out: HeldOut
    encoder: str = ""
    """The fingerprint of the encoder whose vectors it reads; empty where vectors were handed in."""
    encoder_name: str = ""

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        return int(self.head.weights_CD.shape[1])

    def abstain_at(self, precision: float) -> Abstention:
        """Return from which probability on the answers of held-out rows reach a precision."""
        answered = self.held_out.best_N != NO_LABEL
        return choose_threshold(self.held_out.confidence_N[answered], self.held_out.correct_N[answered], precision)

    def facts(self) -> dict[str, Any]:
        """Return what JSON output says of it."""
        return {
            "labels": [{"label": name, "examples": int(n)} for name, n in zip(self.labels, self.examples_C, strict=True)],
            "made_of": self.made_of,
            "multi": self.multi,
            "strength": self.strength,
            "temperature": round(self.temperature, 4),
            "encoder": self.encoder_name,
            "held_out": {
                "rows": len(np.unique(self.held_out.row_N)),
                "micro_f1" if self.multi else "accuracy": _round(self.held_out.micro_f1),
                "macro_f1": _round(self.held_out.macro_f1),
            },
        }


def _round(value: float) -> float | None:
    return round(value, 4) if value == value else None
