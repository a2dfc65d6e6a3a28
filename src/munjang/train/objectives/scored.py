"""Objectives for pairs with a score: regression on the cosine, CoSENT and AnglE.

Regression (the paper's for STS): the cosine of u and v against the score, mean squared error; scores come in scaled to 0 … 1 (the examples
do that from the data's stated range), −1 … 1 is accepted, since a cosine reaches it. CoSENT: pairs with a higher score must have a higher
cosine; only the order of scores counts, so any range will do; loss = log(1 + Σ exp(scale · (cos_k − cos_i))) over all rows k and i where i
has the higher score. AnglE: CoSENT's ordering with a similarity whose gradient does not die where the cosine is flat; a vector's two
halves are read as real and imaginary parts, and the similarity is |cos(u, v) + sin(u, v)| in that space. Equal to sentence-transformers'
CosineSimilarityLoss, CoSENTLoss and AnglELoss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Objective, cosine, refuse_labels_outside
from munjang.train.settings import refuse_unless


class Regression(Objective):
    """Mean squared error of the cosine."""

    name = "regression"
    word = TrainingWord.OBJECTIVE_REGRESSION
    columns_needed = 2
    label_kind = "score"

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean of (cos(u, v) − score)²."""
        remedy = "state the label range in the data's table, so that scores are scaled to 0 … 1"
        refuse_labels_outside(self.name, labels, allowed_B=(labels >= -1) & (labels <= 1), expected="a score in -1 … 1", remedy=remedy)
        return F.mse_loss(cosine(columns[0], columns[1]), labels)


@dataclass(frozen=True)
class CosentSettings:
    """How sharply a wrong order is punished."""

    scale: float = 20.0

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "objective 'cosent': scale must be more than 0")


class Cosent(Objective):
    """Puts the cosines of a batch into the order of its scores."""

    name = "cosent"
    word = TrainingWord.OBJECTIVE_COSENT
    settings_type = CosentSettings
    settings: CosentSettings
    columns_needed = 2
    label_kind = "score"
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the ordering loss of the cosines."""
        refuse_labels_outside(self.name, labels, allowed_B=labels.isfinite(), expected="a finite score", remedy="repair the label column")
        return ordering_loss(cosine(columns[0], columns[1]) * self.settings.scale, labels)


def ordering_loss(scores_B: Tensor, labels_B: Tensor) -> Tensor:
    """Return log(1 + Σ exp(s_k − s_i)) over all (k, i) where label k < label i; 0 where no two labels differ."""
    lower_BB = labels_B[:, None] < labels_B[None, :]
    excess_BB = (scores_B[:, None] - scores_B[None, :]).masked_fill(~lower_BB, -torch.inf)
    return torch.logsumexp(torch.cat([scores_B.new_zeros(1), excess_BB.flatten()]), dim=0)


@dataclass(frozen=True)
class AngleSettings:
    """How sharply a wrong order is punished."""

    scale: float = 20.0

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "objective 'angle': scale must be more than 0")


class Angle(Objective):
    """Puts the angle similarities of a batch into the order of its scores."""

    name = "angle"
    word = TrainingWord.OBJECTIVE_ANGLE
    settings_type = AngleSettings
    settings: AngleSettings
    columns_needed = 2
    label_kind = "score"
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the ordering loss of the angle similarities."""
        refuse_labels_outside(self.name, labels, allowed_B=labels.isfinite(), expected="a finite score", remedy="repair the label column")
        return ordering_loss(angle_similarity(columns[0], columns[1]) * self.settings.scale, labels)


def angle_similarity(u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return |cos + sin| of each row's two vectors read as complex ones; an odd dimension gets one zero more."""
    odd = u_BD.shape[1] % 2
    u_real, u_imaginary = F.pad(F.normalize(u_BD, dim=1), (0, odd)).chunk(2, dim=1)
    v_real, v_imaginary = F.pad(F.normalize(v_BD, dim=1), (0, odd)).chunk(2, dim=1)
    cosines_B = (u_real * v_real + u_imaginary * v_imaginary).sum(dim=1)
    sines_B = (u_imaginary * v_real - u_real * v_imaginary).sum(dim=1)
    return (cosines_B + sines_B).abs()
