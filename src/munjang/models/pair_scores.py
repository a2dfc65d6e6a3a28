"""What scoring pairs gives, and how logits become scores; for cross-encoders and pair classifiers alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from munjang.engine.modules import Activation
from munjang.errors import UsageError, quote
from munjang.tables import Row, Table
from munjang.types import Vectors
from munjang.wording import brief_repr

ScoreKind: TypeAlias = Literal["model", "logits", "sigmoid", "softmax"]
"""What a score is: the model's own activation, the raw logit, or one of two activations by name."""
DEFAULT_SCORE: ScoreKind = "model"


@brief_repr
@dataclass(frozen=True)
class PairScores(Table):
    """Scores, and which pairs did not fit."""

    scores: Vectors
    """One number per pair, shape (n,); or, of a model with several labels, one row per pair, shape (n, labels)."""
    cut: list[int]
    """Indices of the pairs whose second text lost its end (or whose first text alone was too long)."""
    labels: tuple[str, ...] = ()
    """The names of the columns of `scores`; none where there is one number per pair."""

    def to_rows(self) -> list[Row]:
        """Return the score of each pair; of a model with several labels, the label and the score of each label."""
        if not self.labels:
            return [{"score": score} for score in self.scores.tolist()]
        return [
            {"label": label, **dict(zip(self.labels, scores, strict=True))}
            for label, scores in zip(self.predicted, self.scores.tolist(), strict=True)
        ]

    @property
    def predicted(self) -> list[str]:
        """The label with the highest score of each pair, the first on ties."""
        if not self.labels:
            raise UsageError("the model gives one score per pair and no labels\n  compare the scores with a threshold")
        return [self.labels[place] for place in self.scores.argmax(axis=1)]


def choose_activation(score: ScoreKind, own: Activation | Literal["softmax"]) -> Activation | Literal["softmax"]:
    """Return what turns logits into the scores that were asked for; `own` is the model's own activation."""
    if score == "model":
        return own
    if score not in ("logits", "sigmoid", "softmax"):
        raise UsageError(f"score={score!r} is unknown; expected 'model', 'logits', 'sigmoid' or 'softmax'")
    return "identity" if score == "logits" else score


def activate_logits(logits: Vectors, activation: Activation | Literal["softmax"]) -> Vectors:
    """Return scores, shape (n, labels)."""
    if activation == "identity":
        return logits
    if activation == "sigmoid":
        half: Vectors = 0.5 * (1 + np.tanh(0.5 * logits))
        return half
    if activation == "softmax":
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: Vectors = raised / raised.sum(axis=1, keepdims=True)
        return shares
    if activation == "tanh":
        return np.tanh(logits)
    if activation == "relu":
        return np.maximum(logits, 0)
    raise UsageError(f"the activation {activation!r} is not one for scores")


class PairLabeller(Protocol):
    """A model that labels pairs: a cross-encoder or a pair classifier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the scores would."""
        ...

    def predict(self, pairs: Sequence[tuple[str, str]], /, *, score: ScoreKind = DEFAULT_SCORE, progress: bool = False) -> Vectors:
        """Return the scores of pairs."""
        ...


@brief_repr
@dataclass(frozen=True)
class LabelScorer:
    """A Scorer whose score is the probability of one label of a model; made by the model's `for_label`."""

    model: PairLabeller
    label: str
    score: ScoreKind

    @property
    def fingerprint(self) -> str:
        """Changes whenever the scores would."""
        return f"{self.model.fingerprint} {self.score} {self.label}"

    def predict(self, pairs: Sequence[tuple[str, str]], /, *, progress: bool = False) -> Vectors:
        """Return one probability per pair."""
        scores_NK = self.model.predict(pairs, score=self.score, progress=progress)
        column: Vectors = scores_NK[:, self.model.labels.index(self.label)]
        return column


def make_label_scorer(model: PairLabeller, label: str, *, score: ScoreKind) -> LabelScorer:
    """Return a model as the Scorer of one of its labels; an unknown label, and a model with one score, are refused."""
    if len(model.labels) < 2:
        raise UsageError("the model gives one score per pair and no labels, so there is none to choose\n  use the model itself")
    if label not in model.labels:
        raise UsageError(f"the model has no label {quote(str(label))}; it has: {', '.join(model.labels[:20])}")
    return LabelScorer(model, label, score)
