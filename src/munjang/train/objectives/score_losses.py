"""Losses on a cross-encoder's scores: (logits, labels) → a scalar, and the `ScoreObjective` that runs one of them in the trainer.

Each loss is a frozen dataclass: its fields are its settings, calling it gives the loss. `shape` says what comes in: "pair", one score (B,)
or one row of class scores (B, K) a pair; "list", a query's scores side by side (Q, N), with a mask that is False on padding; what stands
on padding never counts. Equal to sentence-transformers' cross-encoder losses of the same names.

Shapes: B pairs, K classes, Q queries, N documents of the longest list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Objective, to_float32
from munjang.train.objectives.labelled import margin_mse
from munjang.train.settings import refuse_unless


class ScoreLoss(Protocol):
    """Turns a cross-encoder's logits into a loss."""

    name: ClassVar[str]
    shape: ClassVar[Literal["pair", "list"]]

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch."""
        ...


@dataclass(frozen=True)
class Mse:
    """Mean squared error of the logit, or of its sigmoid, against one number per pair."""

    name: ClassVar[str] = "mse"
    shape: ClassVar[Literal["pair", "list"]] = "pair"
    activation: Literal["sigmoid", "none"] = "none"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean of (score − label)²."""
        logits_B, labels_B = _check_pair(self.name, logits, labels, mask)
        return F.mse_loss(logits_B.sigmoid() if self.activation == "sigmoid" else logits_B, labels_B)


@dataclass(frozen=True)
class Bce:
    """Binary cross-entropy of the logit's sigmoid against 0 … 1; `positive_weight` counts positives more."""

    name: ClassVar[str] = "bce"
    shape: ClassVar[Literal["pair", "list"]] = "pair"
    positive_weight: float = 1.0

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean cross-entropy."""
        logits_B, labels_B = _check_pair(self.name, logits, labels, mask)
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
        classes_B = _require_labels(self.name, labels, mask).reshape(-1).long()
        if logits.ndim != 2 or len(logits) != len(classes_B):
            raise InputError(f"loss 'cross_entropy': logits have shape {tuple(logits.shape)}, expected ({len(classes_B)}, classes)")
        if not bool(((classes_B >= 0) & (classes_B < logits.shape[1])).all()):
            raise InputError(f"loss 'cross_entropy': a label lies outside 0 … {logits.shape[1] - 1}, the classes the model has")
        return F.cross_entropy(to_float32(logits), classes_B)


@dataclass(frozen=True)
class ScoreMarginMse:
    """Mean squared error of margins over the first document against a teacher's."""

    name: ClassVar[str] = "margin_mse"
    shape: ClassVar[Literal["pair", "list"]] = "list"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the error of logits (Q, 1 + N); labels are margins (Q, N) or scores (Q, 1 + N)."""
        return margin_mse(to_float32(logits), _require_labels(self.name, labels, mask))


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
        scores_QN = (to_float32(logits).sigmoid() if self.activation == "sigmoid" else to_float32(logits)) * self.scale
        if mask is not None:
            if not bool(mask[:, 0].all()):
                raise InputError("loss 'multiple_negatives': a query's first document is padding, expected the positive")
            scores_QN = scores_QN.masked_fill(~mask, -torch.inf)
        return F.cross_entropy(scores_QN, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def _require_labels(name: str, labels: Tensor | None, mask: Tensor | None) -> Tensor:
    if labels is None:
        raise InputError(f"loss {name!r} needs a label for each pair, the data has none")
    if mask is not None and not bool(mask.all()):
        raise InputError(f"loss {name!r} takes no padding")
    return labels.detach()


def _check_pair(name: str, logits: Tensor, labels: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    logits_B, labels_B = to_float32(logits).reshape(-1), _require_labels(name, labels, mask).reshape(-1)
    if len(logits_B) != len(labels_B) or (logits.ndim == 2 and logits.shape[1] != 1):
        raise InputError(f"loss {name!r}: logits have shape {tuple(logits.shape)} for {len(labels_B)} labels, expected one score a pair")
    return logits_B, labels_B.to(logits_B)


Weighting: TypeAlias = Literal["none", "ndcg1", "ndcg2", "lambdarank", "ndcg2++"]


@dataclass(frozen=True)
class ListNet:
    """Cross-entropy between the softmax of the labels and the softmax of the scores."""

    name: ClassVar[str] = "listnet"
    shape: ClassVar[Literal["pair", "list"]] = "list"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean over queries."""
        logits_QN, labels_QN, mask_QN = _check_lists(self.name, logits, labels, mask)
        wanted_QN = labels_QN.masked_fill(~mask_QN, -torch.inf).softmax(dim=1)
        # finite, since 0 · −inf is not a number; half, so that the log-softmax cannot overflow
        padding = torch.finfo(logits_QN.dtype).min / 2
        return F.cross_entropy(logits_QN.masked_fill(~mask_QN, padding), wanted_QN)


@dataclass(frozen=True)
class LambdaLoss:
    """Logistic loss of each pair of documents in the wrong order, weighted by the effect of the swap on nDCG.

    `k` counts only pairs with a document among the first k; `sigma` is the steepness, `mu` the share of ndcg2 in ndcg2++.
    """

    name: ClassVar[str] = "lambdaloss"
    shape: ClassVar[Literal["pair", "list"]] = "list"
    weighting: Weighting = "ndcg2++"
    k: int | None = None
    sigma: float = 1.0
    mu: float = 10.0

    def __post_init__(self) -> None:
        refuse_unless(self.k is None or self.k > 0, f"loss 'lambdaloss': k is {self.k}, expected 1 or more")
        refuse_unless(self.sigma > 0, "loss 'lambdaloss': sigma must be more than 0")

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean over all counted pairs of documents, in bits; 0 where no two labels differ."""
        logits_QN, labels_QN, mask_QN = _check_lists(self.name, logits, labels, mask)
        # documents in the order the model gives them, padding last
        order_QN = logits_QN.masked_fill(~mask_QN, -torch.inf).argsort(dim=1, descending=True)
        scores_QN, relevance_QN, real_QN = (rows.gather(1, order_QN) for rows in (logits_QN, labels_QN, mask_QN))
        counted_QNN = self._find_counted(relevance_QN, real_QN)
        gains_QN = _make_gains(relevance_QN.masked_fill(~real_QN, 0.0), k=self.k)
        weights = pair_weights(gains_QN, weighting=self.weighting, mu=self.mu).expand(counted_QNN.shape)[counted_QNN]
        differences = (scores_QN[:, :, None] - scores_QN[:, None, :])[counted_QNN]
        return -(weights * F.logsigmoid(self.sigma * differences)).sum() / (max(len(differences), 1) * math.log(2))

    def _find_counted(self, relevance_QN: Tensor, real_QN: Tensor) -> Tensor:
        """Return which pairs of positions count: both real, the first more relevant, one of them among the first k."""
        counted_QNN = real_QN[:, :, None] & real_QN[:, None, :]
        if self.weighting != "ndcg1":
            counted_QNN = counted_QNN & (relevance_QN[:, :, None] > relevance_QN[:, None, :])
        if self.k is not None:
            top_N = torch.arange(relevance_QN.shape[1], device=relevance_QN.device) < self.k
            counted_QNN = counted_QNN & (top_N[:, None] | top_N[None, :])
        return counted_QNN


@dataclass(frozen=True)
class RankNet:
    """Logistic loss of each pair of documents in the wrong order, weighted equally."""

    name: ClassVar[str] = "ranknet"
    shape: ClassVar[Literal["pair", "list"]] = "list"
    k: int | None = None
    sigma: float = 1.0

    def __post_init__(self) -> None:
        refuse_unless(self.k is None or self.k > 0, f"loss 'ranknet': k is {self.k}, expected 1 or more")
        refuse_unless(self.sigma > 0, "loss 'ranknet': sigma must be more than 0")

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean over all counted pairs of documents, in bits."""
        logits_QN, labels_QN, mask_QN = _check_lists(self.name, logits, labels, mask)
        return LambdaLoss(weighting="none", k=self.k, sigma=self.sigma)(logits_QN, labels_QN, mask=mask_QN)


def pair_weights(gains_QN: Tensor, *, weighting: Weighting, mu: float) -> Tensor:
    """Return what each pair of positions weighs, broadcastable to (Q, N, N)."""
    if weighting == "none":
        return gains_QN.new_ones(1, 1, 1)
    discounts_N = _make_discounts(gains_QN)
    if weighting == "ndcg1":
        return (gains_QN / discounts_N)[:, :, None]
    gaps_QNN = (gains_QN[:, :, None] - gains_QN[:, None, :]).abs()
    swap_NN = (1 / discounts_N[:, None] - 1 / discounts_N[None, :]).abs()
    if weighting == "lambdarank":
        return swap_NN * gaps_QNN
    bound_NN = _make_ndcg2_discounts(discounts_N)
    return bound_NN * gaps_QNN if weighting == "ndcg2" else (mu * bound_NN + swap_NN) * gaps_QNN


def _make_discounts(like_QN: Tensor) -> Tensor:
    positions_N = torch.arange(1, like_QN.shape[1] + 1, device=like_QN.device, dtype=like_QN.dtype)
    return torch.log2(1 + positions_N)


def _make_ndcg2_discounts(discounts_N: Tensor) -> Tensor:
    """Return |1/D(d) − 1/D(d + 1)| for positions d apart, 0 on the diagonal."""
    positions_N = torch.arange(len(discounts_N), device=discounts_N.device)
    apart_NN = (positions_N[:, None] - positions_N[None, :]).abs()
    steps_N = F.pad((1 / discounts_N[:-1] - 1 / discounts_N[1:]).abs(), (1, 0))
    return steps_N[apart_NN]


def _make_gains(relevance_QN: Tensor, *, k: int | None) -> Tensor:
    """Return (2^relevance − 1) / the best DCG@k the query allows; a negative relevance counts as 0."""
    raw_QN = 2 ** relevance_QN.clamp(min=0) - 1
    best_QN = raw_QN.sort(dim=1, descending=True).values / _make_discounts(raw_QN)
    return raw_QN / best_QN[:, :k].sum(dim=1, keepdim=True).clamp(min=1e-10)


def _check_lists(name: str, logits: Tensor, labels: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    logits_QN = to_float32(logits)
    mask_QN = torch.ones_like(logits_QN, dtype=torch.bool) if mask is None else mask.bool()
    if labels is None or logits_QN.ndim != 2 or not labels.shape == logits_QN.shape == mask_QN.shape:
        found = f"logits {tuple(logits_QN.shape)}, labels {'none' if labels is None else tuple(labels.shape)}, mask {tuple(mask_QN.shape)}"
        raise InputError(f"loss {name!r}: found {found}, expected all three as (queries, documents)")
    if not bool(mask_QN.any(dim=1).all()):
        raise InputError(f"loss {name!r}: a query has no documents")
    return logits_QN, labels.detach().to(logits_QN), mask_QN


_DESCRIBED = {
    "mse": TrainingWord.LOSS_MSE,
    "bce": TrainingWord.LOSS_BCE,
    "cross_entropy": TrainingWord.LOSS_CROSS_ENTROPY,
    "margin_mse": TrainingWord.LOSS_MARGIN_MSE,
    "multiple_negatives": TrainingWord.LOSS_MULTIPLE_NEGATIVES,
    "listnet": TrainingWord.LOSS_LISTNET,
    "lambdaloss": TrainingWord.LOSS_LAMBDALOSS,
    "ranknet": TrainingWord.LOSS_RANKNET,
}


class ScoreObjective(Objective):
    """Runs a `ScoreLoss` on what a cross-encoder gives for each document column."""

    columns_needed = "2+"

    def __init__(self, loss: ScoreLoss) -> None:
        super().__init__()
        self.score_loss = loss
        self.name = loss.name
        # these two are means over pairs of documents, so parts of a batch do not add up to its loss
        self.compares_rows = loss.name in ("lambdaloss", "ranknet")

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """Return the scalar loss of one batch of logits."""
        if self.score_loss.shape == "pair":
            logits_BK = columns[0]
            return self.score_loss(logits_BK[:, 0] if logits_BK.shape[1] == 1 else logits_BK, labels)
        if any(column.shape[1] != 1 for column in columns):
            raise InputError(f"loss {self.name!r} orders documents by one score, the model has {columns[0].shape[1]} labels")
        logits_BN = torch.cat(list(columns), dim=1)
        if self.name == "margin_mse" or labels is None:
            return self.score_loss(logits_BN, labels)
        there_BN = ~labels.isnan()
        relevance_BN = None if self.name == "multiple_negatives" else labels.nan_to_num(0.0)
        return self.score_loss(logits_BN, relevance_BN, mask=there_BN)

    def describe(self) -> str:
        """Say in one line what is made smaller."""
        return Message(_DESCRIBED[self.name])
