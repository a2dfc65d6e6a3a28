"""MarginMSE: by how much the positive beats each negative must be what the teacher says, mean squared error.

Labels are a teacher's margins (B, N) or (B,), or its scores of positive and negatives (B, 1 + N). `margin_mse` takes the student's scores,
so that a cross-encoder can learn too; `MarginMse` makes them from a bi-encoder's vectors. Equal to sentence-transformers' MarginMSELoss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective
from munjang.train.objectives.distances import Similarity, similarity
from munjang.train.objectives.settings import read_settings


@dataclass(frozen=True)
class MarginMseSettings:
    """Which similarity is the student's score; a teacher's logits have no bound, so the dot product is the default."""

    similarity: Similarity = "dot"


class MarginMse(Objective):
    """A cross-encoder teaches a bi-encoder how much better the positive is."""

    name = "margin_mse"
    columns_needed = "3+"
    label_kind = "margins"

    def __init__(self, settings: MarginMseSettings) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> MarginMse:  # noqa: ARG003
        """Make the objective; it has no head."""
        return cls(read_settings(MarginMseSettings, values, where="objective 'margin_mse'"))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean squared error of the margins."""
        scores = [similarity(self.settings.similarity, columns[0], candidate_BD) for candidate_BD in columns[1:]]
        return margin_mse(torch.stack(scores, dim=1), labels)

    def describe(self) -> str:
        """Say which similarity is used."""
        return Message(Word.OBJECTIVE_MARGIN_MSE, similarity=self.settings.similarity)


def margin_mse(scores_BN1: Tensor, teacher: Tensor) -> Tensor:
    """Return the error of scores whose first column is the positive's; `teacher` holds margins (B, N) or scores (B, 1 + N)."""
    margins_BN = scores_BN1[:, :1] - scores_BN1[:, 1:]
    wanted = teacher.detach().to(margins_BN)
    if wanted.ndim == 1:
        wanted = wanted[:, None]
    if wanted.shape == scores_BN1.shape:
        wanted = wanted[:, :1] - wanted[:, 1:]
    if wanted.shape != margins_BN.shape:
        rows, negatives = margins_BN.shape
        expected = f"({rows}, {negatives}) margins or ({rows}, {negatives + 1}) scores"
        raise InputError(f"margin_mse: the teacher's labels have shape {tuple(teacher.shape)}, expected {expected}")
    return F.mse_loss(margins_BN, wanted)
