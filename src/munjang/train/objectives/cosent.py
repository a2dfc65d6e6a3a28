"""CoSENT: pairs with a higher score must have a higher cosine; only the order of scores counts, so any range will do.

loss = log(1 + Σ exp(scale · (cos_k − cos_i))) over all rows k and i where i has the higher score. Equal to sentence-transformers'
CoSENTLoss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective, refuse_labels_outside
from munjang.train.objectives.distances import cosine
from munjang.train.objectives.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class CosentSettings:
    """How sharply a wrong order is punished."""

    scale: float = 20.0

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "objective 'cosent': scale must be more than 0")


class Cosent(Objective):
    """Puts the cosines of a batch into the order of its scores."""

    name = "cosent"
    columns_needed = 2
    label_kind = "score"
    compares_rows = True

    def __init__(self, settings: CosentSettings) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Cosent:  # noqa: ARG003
        """Make the objective; it has no head."""
        return cls(read_settings(CosentSettings, values, where="objective 'cosent'"))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the ordering loss of the cosines."""
        refuse_labels_outside(self.name, labels, allowed_B=labels.isfinite(), expected="a finite score", remedy="repair the label column")
        return ordering_loss(cosine(columns[0], columns[1]) * self.settings.scale, labels)

    def describe(self) -> str:
        """Say the scale."""
        return Message(Word.OBJECTIVE_COSENT, scale=self.settings.scale)


def ordering_loss(scores_B: Tensor, labels_B: Tensor) -> Tensor:
    """Return log(1 + Σ exp(s_k − s_i)) over all (k, i) where label k < label i; 0 where no two labels differ."""
    lower_BB = labels_B[:, None] < labels_B[None, :]
    excess_BB = (scores_B[:, None] - scores_B[None, :]).masked_fill(~lower_BB, -torch.inf)
    return torch.logsumexp(torch.cat([scores_B.new_zeros(1), excess_BB.flatten()]), dim=0)
