"""Losses on a cross-encoder's scores: (logits, labels) → a scalar. The listwise ones are in `listwise`.

Each loss is a frozen dataclass: its fields are its settings, calling it gives the loss. `shape` says what comes in: "pair", one score (B,)
or one row of class scores (B, K) a pair; "list", a query's scores side by side (Q, N), with a mask that is False on padding. Equal to
sentence-transformers' cross-encoder losses of the same names.

Shapes: B pairs, K classes, Q queries, N documents of the longest list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.train.objectives.base import precise
from munjang.train.objectives.marginmse import margin_mse
from munjang.train.objectives.settings import refuse_unless


class ScoreLoss(Protocol):
    """Turns a cross-encoder's logits into a loss."""

    name: ClassVar[str]
    shape: ClassVar[Literal["pair", "list"]]

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch."""
        ...


@dataclass(frozen=True)
class Mse:
    """Mean squared error of the logit, or of its sigmoid, against a number a pair."""

    name: ClassVar[str] = "mse"
    shape: ClassVar[Literal["pair", "list"]] = "pair"
    activation: Literal["sigmoid", "none"] = "none"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean of (score − label)²."""
        logits_B, labels_B = _one_score_a_pair(self.name, logits, labels, mask)
        return F.mse_loss(logits_B.sigmoid() if self.activation == "sigmoid" else logits_B, labels_B)


@dataclass(frozen=True)
class Bce:
    """Binary cross-entropy of the logit's sigmoid against 0 … 1; `positive_weight` counts positives more."""

    name: ClassVar[str] = "bce"
    shape: ClassVar[Literal["pair", "list"]] = "pair"
    positive_weight: float = 1.0

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean cross-entropy."""
        logits_B, labels_B = _one_score_a_pair(self.name, logits, labels, mask)
        if not bool(((labels_B >= 0) & (labels_B <= 1)).all()):
            raise InputError(
                "loss 'bce': a label lies outside 0 … 1\n  state the label range in the data's table, so that labels are scaled to 0 … 1"
            )
        return F.binary_cross_entropy_with_logits(logits_B, labels_B, pos_weight=logits_B.new_tensor(self.positive_weight))


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy over K classes."""

    name: ClassVar[str] = "cross_entropy"
    shape: ClassVar[Literal["pair", "list"]] = "pair"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean cross-entropy of logits (B, K) against classes (B,)."""
        classes_B = _given(self.name, labels, mask).reshape(-1).long()
        if logits.ndim != 2 or len(logits) != len(classes_B):
            raise InputError(f"loss 'cross_entropy': logits have shape {tuple(logits.shape)}, expected ({len(classes_B)}, classes)")
        if not bool(((classes_B >= 0) & (classes_B < logits.shape[1])).all()):
            raise InputError(f"loss 'cross_entropy': a label lies outside 0 … {logits.shape[1] - 1}, the classes the model has")
        return F.cross_entropy(precise(logits), classes_B)


@dataclass(frozen=True)
class ScoreMarginMse:
    """Mean squared error of margins over the first document against a teacher's."""

    name: ClassVar[str] = "margin_mse"
    shape: ClassVar[Literal["pair", "list"]] = "list"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the error of logits (Q, 1 + N); labels are margins (Q, N) or scores (Q, 1 + N)."""
        return margin_mse(precise(logits), _given(self.name, labels, mask))


@dataclass(frozen=True)
class MultipleNegatives:
    """Cross-entropy of the first document, the positive, against the query's others."""

    name: ClassVar[str] = "multiple_negatives"
    shape: ClassVar[Literal["pair", "list"]] = "list"
    scale: float = 10.0
    activation: Literal["sigmoid", "none"] = "sigmoid"

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "loss 'multiple_negatives': scale must be more than 0")

    def __call__(self, logits: Tensor, labels: Tensor | None = None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean cross-entropy of logits (Q, N); it reads no labels."""
        if labels is not None:
            raise InputError("loss 'multiple_negatives' reads no labels: the first document is the positive")
        scores_QN = (precise(logits).sigmoid() if self.activation == "sigmoid" else precise(logits)) * self.scale
        if mask is not None:
            if not bool(mask[:, 0].all()):
                raise InputError("loss 'multiple_negatives': a query's first document is padding, expected the positive")
            scores_QN = scores_QN.masked_fill(~mask, -torch.inf)
        return F.cross_entropy(scores_QN, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def _given(name: str, labels: Tensor | None, mask: Tensor | None) -> Tensor:
    if labels is None:
        raise InputError(f"loss {name!r} needs a label for each pair, the data has none")
    if mask is not None and not bool(mask.all()):
        raise InputError(f"loss {name!r} takes no padding")
    return labels.detach()


def _one_score_a_pair(name: str, logits: Tensor, labels: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    logits_B, labels_B = precise(logits).reshape(-1), _given(name, labels, mask).reshape(-1)
    if len(logits_B) != len(labels_B) or (logits.ndim == 2 and logits.shape[1] != 1):
        raise InputError(f"loss {name!r}: logits have shape {tuple(logits.shape)} for {len(labels_B)} labels, expected one score a pair")
    return logits_B, labels_B.to(logits_B)
