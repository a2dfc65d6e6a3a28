"""Contrastive objectives for pairs that match (1) or do not (0): matches are drawn together, others pushed beyond a margin.

`Contrastive` takes the mean over all pairs; `OnlineContrastive` sums over the hard ones only: matches farther apart than the nearest
non-match, and non-matches nearer than the farthest match. Equal to sentence-transformers' ContrastiveLoss and OnlineContrastiveLoss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Distance, Objective, distance, refuse_labels_outside
from munjang.train.settings import refuse_unless

EPSILON = 1e-6
"""Added to differences, as torch's pairwise_distance does: a matching pair of equal vectors keeps a finite gradient."""


@dataclass(frozen=True)
class ContrastiveSettings:
    """The distance, and how far apart pairs that do not match should be."""

    distance: Distance = "cosine"
    margin: float = 0.5

    def __post_init__(self) -> None:
        refuse_unless(self.margin > 0, f"objective 'contrastive': margin is {self.margin:g}, expected more than 0")


class Contrastive(Objective):
    """Half the squared distance of matches, half the squared lack of margin of others, averaged."""

    name = "contrastive"
    word = TrainingWord.OBJECTIVE_CONTRASTIVE
    settings_type = ContrastiveSettings
    settings: ContrastiveSettings
    columns_needed = 2
    label_kind = "binary"

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean over the batch."""
        distances_B = _measure_distances(self.name, self.settings, columns, labels)
        lacking_B = F.relu(self.settings.margin - distances_B)
        return 0.5 * (labels * distances_B.square() + (1 - labels) * lacking_B.square()).mean()


class OnlineContrastive(Objective):
    """The contrastive sum over the batch's hard pairs."""

    name = "online_contrastive"
    word = TrainingWord.OBJECTIVE_ONLINE_CONTRASTIVE
    settings_type = ContrastiveSettings
    settings: ContrastiveSettings
    columns_needed = 2
    label_kind = "binary"
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the sum over hard pairs; where one kind is missing, a pair is hard on the wrong side of its own kind's mean."""
        distances_B = _measure_distances(self.name, self.settings, columns, labels)
        matches, others = distances_B[labels == 1], distances_B[labels == 0]
        hard_matches = matches[matches > (others.min() if len(others) else matches.mean())]
        hard_others = others[others < (matches.max() if len(matches) else others.mean())]
        return hard_matches.square().sum() + F.relu(self.settings.margin - hard_others).square().sum()


def _measure_distances(name: str, settings: ContrastiveSettings, columns: list[Tensor], labels_B: Tensor) -> Tensor:
    """Return each row's distance, after refusing labels other than 0 and 1."""
    allowed_B = (labels_B == 0) | (labels_B == 1)
    remedy = "for graded scores name cosent, for classes classification"
    refuse_labels_outside(name, labels_B, allowed_B=allowed_B, expected="0 or 1", remedy=remedy)
    return distance(settings.distance, columns[0], columns[1], epsilon=EPSILON)


@dataclass(frozen=True)
class TripletSettings:
    """The distance and by how much the negative must be farther."""

    distance: Distance = "euclidean"
    margin: float = 1.0

    def __post_init__(self) -> None:
        refuse_unless(self.margin > 0, f"objective 'triplet': margin is {self.margin:g}, expected more than 0")


class TripletObjective(Objective):
    """The negative must be farther from the anchor than the positive, by the margin."""

    name = "triplet"
    word = TrainingWord.OBJECTIVE_TRIPLET
    settings_type = TripletSettings
    settings: TripletSettings
    columns_needed = 3

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean hinge."""
        anchor_BD, positive_BD, negative_BD = columns
        near_B = distance(self.settings.distance, anchor_BD, positive_BD)
        far_B = distance(self.settings.distance, anchor_BD, negative_BD)
        return F.relu(near_B - far_B + self.settings.margin).mean()
