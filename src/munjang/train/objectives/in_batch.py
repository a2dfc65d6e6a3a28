"""In-batch negatives (multiple negatives ranking): each anchor must find its own positive among all the batch's candidates.

Columns: anchor, positive, and any number of hard negatives, which are candidates for every anchor. `symmetric` also asks each positive to
find its anchor, and takes the mean of both. Equal to sentence-transformers' MultipleNegativesRankingLoss, and with `symmetric` to its
symmetric one. A text that stands in a batch twice would be its own negative, so batches must hold no duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Objective, Similarity, all_pairs
from munjang.train.settings import refuse_unless


@dataclass(frozen=True)
class InBatchSettings:
    """How similarities become logits. Give `scale` or `temperature` (= 1 / scale), not both.

    Without either the scale is 20 for cosines and 1 for dot products.
    """

    similarity: Similarity = "cosine"
    symmetric: bool = False
    scale: float | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        refuse_unless(
            self.scale is None or self.temperature is None, "objective 'in_batch': found scale and temperature, expected one of them"
        )
        refuse_unless(self.scale is None or self.scale > 0, "objective 'in_batch': scale must be more than 0")
        refuse_unless(self.temperature is None or self.temperature > 0, "objective 'in_batch': temperature must be more than 0")

    @property
    def factor(self) -> float:
        """What similarities are multiplied by."""
        if self.temperature is not None:
            return 1 / self.temperature
        return self.scale if self.scale is not None else (20.0 if self.similarity == "cosine" else 1.0)


class InBatch(Objective):
    """Cross-entropy of the own positive against every other candidate of the batch."""

    name = "in_batch"
    settings_type: type = InBatchSettings
    settings: InBatchSettings
    columns_needed = "2+"
    needs_no_duplicates = True
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean cross-entropy, of both directions if symmetric."""
        anchors_BD, candidates_CD = columns[0], torch.cat(columns[1:])
        own_B = torch.arange(len(anchors_BD), device=anchors_BD.device)
        logits_BC = all_pairs(self.settings.similarity, anchors_BD, candidates_CD) * self.settings.factor
        forward = F.cross_entropy(logits_BC, own_B)
        if not self.settings.symmetric:
            return forward
        # the first B candidates are the positives; hard negatives have no anchor to find
        return (forward + F.cross_entropy(logits_BC[:, : len(anchors_BD)].T, own_B)) / 2

    def describe(self) -> str:
        """Say similarity, scale and direction."""
        word = TrainingWord.OBJECTIVE_IN_BATCH_BOTH if self.settings.symmetric else TrainingWord.OBJECTIVE_IN_BATCH
        return Message(word, similarity=self.settings.similarity, factor=self.settings.factor)
