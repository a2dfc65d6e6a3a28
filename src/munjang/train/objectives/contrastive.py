"""Objectives that draw matching texts together and push others apart: pairs with labels 1 and 0, and in-batch negatives.

`Contrastive` takes the mean over all pairs; `OnlineContrastive` sums over the hard ones only: matches farther apart than the nearest
non-match, and non-matches nearer than the farthest match. Equal to sentence-transformers' ContrastiveLoss and OnlineContrastiveLoss.

`InBatchNegatives` (multiple negatives ranking): each anchor must find its own positive among all the batch's candidates. Columns: anchor,
positive, and any number of hard negatives, which are candidates for every anchor. `symmetric` also asks each positive to find its anchor,
and takes the mean of both. Equal to sentence-transformers' MultipleNegativesRankingLoss, and with `symmetric` to its symmetric one. A text
that stands in a batch twice would be its own negative, so batches must hold no duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Distance, Objective, Similarity, all_pairs, distance, refuse_labels_outside
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
