"""A cross-encoder's loss in the trainer's words: an objective whose columns are logits.

In: one tensor of logits (B, K) for each document of a row, and labels: (B,) for pairs; for lists (B, N), with NaN where a row has no such
document. Out: a scalar. It has no weights: a cross-encoder's head is part of the model and is kept.

Shapes: B rows of the batch, K labels, N documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective
from munjang.train.objectives.scores import ScoreLoss

_DESCRIBED = {
    "mse": Word.LOSS_MSE,
    "bce": Word.LOSS_BCE,
    "cross_entropy": Word.LOSS_CROSS_ENTROPY,
    "margin_mse": Word.LOSS_MARGIN_MSE,
    "multiple_negatives": Word.LOSS_MULTIPLE_NEGATIVES,
    "listnet": Word.LOSS_LISTNET,
    "lambdaloss": Word.LOSS_LAMBDALOSS,
    "ranknet": Word.LOSS_RANKNET,
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
