"""A TextClassifier and texts → their labels, with probabilities, the runner-up, and an abstention where the answer is not sure enough.

Shapes: N texts, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.classify.classifier import TextClassifier
from munjang.analyze.classify.fitting import HALF, find_vectors
from munjang.analyze.classify.probability import Abstention, to_probabilities
from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Vectors
from munjang.wording import brief_repr

BLOCK = 4_096
"""Rows scored at once."""


@brief_repr
@dataclass(frozen=True)
class TextLabel:
    """What a classifier says of one text."""

    labels: tuple[str, ...]
    """The answer: one label; none where it abstains; several or none where texts may have several."""
    probability: float
    """Of the most likely label, whether it is the answer or not."""
    guess: str
    """The most likely label."""
    runner_up: str
    """The next one that is no answer; empty where there is none."""
    runner_up_probability: float

    @property
    def label(self) -> str | None:
        """The answer where there is one, the most likely of several."""
        return self.labels[0] if self.labels else None


@dataclass(frozen=True, eq=False)
class TextLabels(Table, Sequence[TextLabel]):
    """What a classifier says of texts, in their order."""

    names: tuple[str, ...]
    probability_NC: Vectors
    threshold: float
    """The least probability of an answer."""
    multi: bool
    abstention: Abstention | None = None
    """Where a precision was asked for, what held-out rows say of it."""

    def __len__(self) -> int:
        return len(self.probability_NC)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._at(row) for row in range(*place.indices(len(self)))]
        row = range(len(self))[place]
        return self._at(row)

    def __iter__(self) -> Iterator[TextLabel]:
        return (self._at(row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"TextLabels({len(self):,} texts, {len(self.names):,} labels, {self.answered:.0%} answered)"

    def to_rows(self) -> list[Row]:
        """Return for each text its label, or labels where it may have several, and how likely that is."""
        return [
            {
                **({"labels": list(each.labels)} if self.multi else {"label": each.label}),
                "probability": each.probability,
                "guess": each.guess,
                "runner_up": each.runner_up,
                "runner_up_probability": each.runner_up_probability,
            }
            for each in self
        ]

    @property
    def best_N(self) -> Any:
        """The most likely label of each text, as its place among the names."""
        return self.probability_NC.argmax(axis=1)

    @property
    def answered(self) -> float:
        """The share of texts that have an answer."""
        return float((self.probability_NC.max(axis=1) >= self.threshold).mean()) if len(self) else 0.0

    def _at(self, row: int) -> TextLabel:
        chance_C = self.probability_NC[row]
        order = np.argsort(-chance_C, kind="stable").tolist()
        answers = [place for place in (order if self.multi else order[:1]) if chance_C[place] >= self.threshold]
        best, other = order[0], next((place for place in order[1:] if place not in answers), None)
        return TextLabel(
            tuple(self.names[place] for place in answers),
            float(chance_C[best]),
            self.names[best],
            "" if other is None else self.names[other],
            0.0 if other is None else float(chance_C[other]),
        )


def apply_classifier(
    classifier: TextClassifier,
    texts: Sequence[str],
    encoder: Encoder | None = None,
    *,
    precision: Annotated[
        float | None, Option("Answer only where held-out examples reached this precision. Default: always answer.", min=0, max=1)
    ] = None,
    vectors: ArrayLike | None = None,
) -> TextLabels:
    """Return the labels of texts; `encoder` must be the one that the classifier was made with.

    With `precision`, texts whose most likely label is not likely enough get no answer; `abstention` says what share that is on held-out
    examples. `vectors` are the texts' own, where they are known.
    """
    check_options(apply_classifier, locals())
    if encoder is not None:
        check_same_encoder(classifier, encoder)
    abstention = None if precision is None else classifier.abstain_at(precision)
    threshold = HALF if classifier.multi else 0.0
    if abstention is not None:
        threshold = max(threshold, abstention.threshold)
    texts = validate_texts(texts)
    rows_ND = find_vectors(texts, encoder, vectors) if len(texts) else np.zeros((0, classifier.dimension), dtype=np.float32)
    return TextLabels(classifier.labels, score_rows(classifier, rows_ND), threshold, classifier.multi, abstention)


def score_rows(classifier: TextClassifier, rows_ND: Vectors) -> Vectors:
    """Return the probability of every label for unit vectors."""
    if rows_ND.shape[1] != classifier.dimension:
        raise UsageError(f"vectors have {rows_ND.shape[1]:,} dimensions, the classifier reads {classifier.dimension:,}")
    parts = [
        to_probabilities(classifier.head.scores(rows_ND[start : start + BLOCK]), classifier.temperature, multi=classifier.multi)
        for start in range(0, len(rows_ND), BLOCK)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, len(classifier.labels)), dtype=np.float32)


def check_same_encoder(classifier: TextClassifier, encoder: Encoder) -> None:
    """Refuse an encoder whose vectors the classifier was not made for."""
    if classifier.encoder and encoder.fingerprint != classifier.encoder:
        raise UsageError(
            f"the classifier was made with the model {classifier.encoder_name} ({classifier.encoder[:12]}), "
            f"found {getattr(encoder, 'name', 'another')} ({encoder.fingerprint[:12]})\n"
            "  load that model, or fit the classifier again"
        )
