"""Objectives that learn from a teacher: its vectors (distillation) or its margins (MarginMSE).

Distillation: the student's vector of a sentence, and of its translation, against the teacher's vector of the source. Columns: the
student's S(s), and S(t) for parallel pairs (more translations if there are). Labels: the teacher's T(s), shape (B, D). The loss is the
mean over columns and rows of the squared distance ‖T(s) − S(·)‖². With "mse" it is that by D, equal to sentence-transformers' MSELoss: of
unit vectors so small that the optimiser's epsilon is felt. With "cosine" it is the mean of 1 − cos, which is half the squared distance of
the unit vectors and leaves lengths free.

MarginMSE: by how much the positive beats each negative must be what the teacher says, mean squared error. Labels are a teacher's margins
(B, N) or (B,), or its scores of positive and negatives (B, 1 + N). `margin_mse` takes the student's scores, so that a cross-encoder can
learn too. Equal to sentence-transformers' MarginMSELoss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Objective, Similarity, distance, similarity


@dataclass(frozen=True)
class DistillationSettings:
    """What is compared: the vectors themselves (by squared distance, or by that per number), or their directions."""

    compare: Literal["squared", "mse", "cosine"] = "squared"


class Distillation(Objective):
    """Every column should reproduce the teacher's vector."""

    name = "distillation"
    settings_type = DistillationSettings
    settings: DistillationSettings
    columns_needed = "1+"
    label_kind = "vectors"

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean difference from the teacher."""
        if labels.shape != columns[0].shape:
            found, expected = tuple(labels.shape), tuple(columns[0].shape)
            raise InputError(
                f"objective 'distillation': the teacher's vectors are {found}, the student's {expected}\n  give the student a Dense layer"
            )
        return torch.stack([self._difference(column_BD, labels) for column_BD in columns]).mean()

    def _difference(self, student_BD: Tensor, teacher_BD: Tensor) -> Tensor:
        if self.settings.compare != "cosine":
            per_number = F.mse_loss(student_BD, teacher_BD)
            return per_number if self.settings.compare == "mse" else per_number * student_BD.shape[1]
        return distance("cosine", student_BD, teacher_BD).mean()

    def describe(self) -> str:
        """Say what is compared with the teacher."""
        words = {"squared": TrainingWord.OBJECTIVE_SQUARED, "mse": TrainingWord.OBJECTIVE_MSE, "cosine": TrainingWord.OBJECTIVE_COSINE}
        return Message(words[self.settings.compare])


@dataclass(frozen=True)
class MarginMseSettings:
    """Which similarity is the student's score; a teacher's logits have no bound, so the dot product is the default."""

    similarity: Similarity = "dot"


class MarginMse(Objective):
    """A cross-encoder teaches a bi-encoder how much better the positive is."""

    name = "margin_mse"
    word = TrainingWord.OBJECTIVE_MARGIN_MSE
    settings_type = MarginMseSettings
    settings: MarginMseSettings
    columns_needed = "3+"
    label_kind = "margins"

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean squared error of the margins."""
        scores = [similarity(self.settings.similarity, columns[0], candidate_BD) for candidate_BD in columns[1:]]
        return margin_mse(torch.stack(scores, dim=1), labels)


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
