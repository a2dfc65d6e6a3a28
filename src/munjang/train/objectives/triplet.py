"""Triplet objective: max(d(anchor, positive) − d(anchor, negative) + margin, 0), Euclidean with margin 1 as the paper has it.

Equal to sentence-transformers' TripletLoss at the same margin (its own default is 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective
from munjang.train.objectives.distances import Distance, distance
from munjang.train.objectives.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class TripletSettings:
    """The distance and by how much the negative must be farther."""

    distance: Distance = "euclidean"
    margin: float = 1.0

    def __post_init__(self) -> None:
        refuse_unless(self.margin > 0, f"objective 'triplet': margin is {self.margin:g}, expected more than 0")


class Triplet(Objective):
    """The negative is to be farther from the anchor than the positive, by the margin."""

    name = "triplet"
    columns_needed = 3

    def __init__(self, settings: TripletSettings) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Triplet:  # noqa: ARG003
        """Make the objective; it has no head."""
        return cls(read_settings(TripletSettings, values, where="objective 'triplet'"))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean hinge."""
        anchor_BD, positive_BD, negative_BD = columns
        near_B = distance(self.settings.distance, anchor_BD, positive_BD)
        far_B = distance(self.settings.distance, anchor_BD, negative_BD)
        return F.relu(near_B - far_B + self.settings.margin).mean()

    def describe(self) -> str:
        """Say which distance and margin."""
        return Message(Word.OBJECTIVE_TRIPLET, distance=self.settings.distance, margin=self.settings.margin)
