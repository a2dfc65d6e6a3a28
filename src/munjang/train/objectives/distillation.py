"""Distillation: the student's vector of a sentence, and of its translation, against the teacher's vector of the source.

Columns: the student's S(s), and S(t) for parallel pairs (more translations if there are). Labels: the teacher's T(s), shape (B, D).
The loss is the mean over columns and rows of the squared distance ‖T(s) − S(·)‖². With "mse" it is that by D, the mean over numbers, equal
to sentence-transformers' MSELoss: of unit vectors so small that the optimiser's epsilon is felt. With "cosine" it is the mean of 1 − cos,
which is half the squared distance of the unit vectors and leaves lengths free (its EmbedDistillLoss).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective
from munjang.train.objectives.distances import distance
from munjang.train.objectives.settings import read_settings


@dataclass(frozen=True)
class DistillationSettings:
    """What is compared: the vectors themselves (by squared distance, or by that per number), or their directions."""

    compare: Literal["squared", "mse", "cosine"] = "squared"


class Distillation(Objective):
    """Every column is to land on the teacher's vector."""

    name = "distillation"
    columns_needed = "1+"
    label_kind = "vectors"

    def __init__(self, settings: DistillationSettings) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Distillation:  # noqa: ARG003
        """Make the objective; it has no head."""
        return cls(read_settings(DistillationSettings, values, where="objective 'distillation'"))

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
        words = {"squared": Word.OBJECTIVE_SQUARED, "mse": Word.OBJECTIVE_MSE, "cosine": Word.OBJECTIVE_COSINE}
        return Message(words[self.settings.compare])
