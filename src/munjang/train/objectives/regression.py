"""Regression objective (the paper's for STS): the cosine of u and v against the score, mean squared error.

Scores come in scaled to 0 … 1 (the examples do that from the data's stated range); −1 … 1 is accepted, since a cosine reaches it.
Equal to sentence-transformers' CosineSimilarityLoss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective, refuse_labels_outside
from munjang.train.objectives.distances import cosine
from munjang.train.objectives.settings import read_settings


@dataclass(frozen=True)
class RegressionSettings:
    """Nothing to set."""


class Regression(Objective):
    """Mean squared error of the cosine."""

    name = "regression"
    columns_needed = 2
    label_kind = "score"

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Regression:  # noqa: ARG003
        """Make the objective; it has no settings and no head."""
        read_settings(RegressionSettings, values, where="objective 'regression'")
        return cls()

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean of (cos(u, v) − score)²."""
        remedy = "state the label range in the data's table, so that scores are scaled to 0 … 1"
        refuse_labels_outside(self.name, labels, allowed_B=(labels >= -1) & (labels <= 1), expected="a score in -1 … 1", remedy=remedy)
        return F.mse_loss(cosine(columns[0], columns[1]), labels)

    def describe(self) -> str:
        """Say what is compared."""
        return Message(Word.OBJECTIVE_REGRESSION)
