"""Listwise losses on a cross-encoder's scores: a query's documents are ordered together.

In: logits (Q, N), labels (Q, N) (larger is more relevant), and a mask (Q, N) that is False on padding; what stands on padding never counts.
Out: a scalar. Equal to sentence-transformers' ListNetLoss, LambdaLoss and RankNetLoss.

Shapes: Q queries, N documents of the longest list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.train.objectives.base import precise
from munjang.train.objectives.settings import refuse_unless

Weighting: TypeAlias = Literal["none", "ndcg1", "ndcg2", "lambdarank", "ndcg2++"]


@dataclass(frozen=True)
class ListNet:
    """Cross-entropy between the softmax of the labels and the softmax of the scores."""

    name: ClassVar[str] = "listnet"
    shape: ClassVar[Literal["pair", "list"]] = "list"

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean over queries."""
        logits_QN, labels_QN, mask_QN = _checked(self.name, logits, labels, mask)
        wanted_QN = labels_QN.masked_fill(~mask_QN, -torch.inf).softmax(dim=1)
        # finite, since 0 · −inf is not a number; half, so that the log-softmax cannot overflow
        padding = torch.finfo(logits_QN.dtype).min / 2
        return F.cross_entropy(logits_QN.masked_fill(~mask_QN, padding), wanted_QN)


@dataclass(frozen=True)
class LambdaLoss:
    """Logistic loss of each pair of documents in the wrong order, weighted by what the swap would mean for nDCG.

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
        logits_QN, labels_QN, mask_QN = _checked(self.name, logits, labels, mask)
        # documents in the order the model gives them, padding last
        order_QN = logits_QN.masked_fill(~mask_QN, -torch.inf).argsort(dim=1, descending=True)
        scores_QN, relevance_QN, real_QN = (rows.gather(1, order_QN) for rows in (logits_QN, labels_QN, mask_QN))
        counted_QNN = self._counted(relevance_QN, real_QN)
        gains_QN = _gains(relevance_QN.masked_fill(~real_QN, 0.0), k=self.k)
        weights = pair_weights(gains_QN, weighting=self.weighting, mu=self.mu).expand(counted_QNN.shape)[counted_QNN]
        differences = (scores_QN[:, :, None] - scores_QN[:, None, :])[counted_QNN]
        return -(weights * F.logsigmoid(self.sigma * differences)).sum() / (max(len(differences), 1) * math.log(2))

    def _counted(self, relevance_QN: Tensor, real_QN: Tensor) -> Tensor:
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
    """Logistic loss of each pair of documents in the wrong order, all pairs alike."""

    name: ClassVar[str] = "ranknet"
    shape: ClassVar[Literal["pair", "list"]] = "list"
    k: int | None = None
    sigma: float = 1.0

    def __post_init__(self) -> None:
        refuse_unless(self.k is None or self.k > 0, f"loss 'ranknet': k is {self.k}, expected 1 or more")
        refuse_unless(self.sigma > 0, "loss 'ranknet': sigma must be more than 0")

    def __call__(self, logits: Tensor, labels: Tensor | None, /, *, mask: Tensor | None = None) -> Tensor:
        """Return the mean over all counted pairs of documents, in bits."""
        logits_QN, labels_QN, mask_QN = _checked(self.name, logits, labels, mask)
        return LambdaLoss(weighting="none", k=self.k, sigma=self.sigma)(logits_QN, labels_QN, mask=mask_QN)


def pair_weights(gains_QN: Tensor, *, weighting: Weighting, mu: float) -> Tensor:
    """Return what each pair of positions weighs, broadcastable to (Q, N, N)."""
    if weighting == "none":
        return gains_QN.new_ones(1, 1, 1)
    discounts_N = _discounts(gains_QN)
    if weighting == "ndcg1":
        return (gains_QN / discounts_N)[:, :, None]
    gaps_QNN = (gains_QN[:, :, None] - gains_QN[:, None, :]).abs()
    swap_NN = (1 / discounts_N[:, None] - 1 / discounts_N[None, :]).abs()
    if weighting == "lambdarank":
        return swap_NN * gaps_QNN
    bound_NN = _ndcg2_discounts(discounts_N)
    return bound_NN * gaps_QNN if weighting == "ndcg2" else (mu * bound_NN + swap_NN) * gaps_QNN


def _discounts(like_QN: Tensor) -> Tensor:
    positions_N = torch.arange(1, like_QN.shape[1] + 1, device=like_QN.device, dtype=like_QN.dtype)
    return torch.log2(1 + positions_N)


def _ndcg2_discounts(discounts_N: Tensor) -> Tensor:
    """Return |1/D(d) − 1/D(d + 1)| for positions d apart, 0 on the diagonal."""
    positions_N = torch.arange(len(discounts_N), device=discounts_N.device)
    apart_NN = (positions_N[:, None] - positions_N[None, :]).abs()
    steps_N = F.pad((1 / discounts_N[:-1] - 1 / discounts_N[1:]).abs(), (1, 0))
    return steps_N[apart_NN]


def _gains(relevance_QN: Tensor, *, k: int | None) -> Tensor:
    """Return (2^relevance − 1) / the best DCG@k the query allows; a negative relevance counts as 0."""
    raw_QN = 2 ** relevance_QN.clamp(min=0) - 1
    best_QN = raw_QN.sort(dim=1, descending=True).values / _discounts(raw_QN)
    return raw_QN / best_QN[:, :k].sum(dim=1, keepdim=True).clamp(min=1e-10)


def _checked(name: str, logits: Tensor, labels: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    logits_QN = precise(logits)
    mask_QN = torch.ones_like(logits_QN, dtype=torch.bool) if mask is None else mask.bool()
    if labels is None or logits_QN.ndim != 2 or not labels.shape == logits_QN.shape == mask_QN.shape:
        found = f"logits {tuple(logits_QN.shape)}, labels {'none' if labels is None else tuple(labels.shape)}, mask {tuple(mask_QN.shape)}"
        raise InputError(f"loss {name!r}: found {found}, expected all three as (queries, documents)")
    if not bool(mask_QN.any(dim=1).all()):
        raise InputError(f"loss {name!r}: a query has no documents")
    return logits_QN, labels.detach().to(logits_QN), mask_QN
