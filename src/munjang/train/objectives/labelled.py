"""Objectives for pairs with a label: a class, a score, or what a teacher says.

Classification (the paper's for NLI): softmax(W_t [u; v; |u−v|]) against the class, cross-entropy. The concatenation is a choice among u, v,
|u−v| and u∗v, so that the paper's ablation can be run. The head lives here and is thrown away after training, unless the stage keeps it
(`keep_head`). Equal to sentence-transformers' SoftmaxLoss on the same weights (its linear layer has a bias, so has this one).

Regression (the paper's for STS): the cosine of u and v against the score, mean squared error; scores come in scaled to 0 … 1 (the examples
do that from the data's stated range), −1 … 1 is accepted, since a cosine reaches it. CoSENT: pairs with a higher score must have a higher
cosine; only the order of scores counts, so any range will do; loss = log(1 + Σ exp(scale · (cos_k − cos_i))) over all rows k and i where i
has the higher score. AnglE: CoSENT's ordering with a similarity whose gradient does not die where the cosine is flat; a vector's two
halves are read as real and imaginary parts, and the similarity is |cos(u, v) + sin(u, v)| in that space. Equal to sentence-transformers'
CosineSimilarityLoss, CoSENTLoss and AnglELoss.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.engine.pair_head import PARTS, Part
from munjang.errors import InputError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Objective, Similarity, cosine, distance, refuse_labels_outside, similarity
from munjang.train.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class ClassificationSettings:
    """Which parts the classifier sees. Their order in the head is always that of PARTS."""

    parts: tuple[Part, ...] = ("u", "v", "|u-v|")

    def __post_init__(self) -> None:
        refuse_unless(len(self.parts) > 0, f"objective 'classification': parts is empty, expected some of {', '.join(PARTS)}")
        refuse_unless(
            len(set(self.parts)) == len(self.parts), f"objective 'classification': parts {', '.join(self.parts)} has one part twice"
        )


class Classification(Objective):
    """Cross-entropy of a linear classifier over both vectors."""

    name = "classification"
    settings_type = ClassificationSettings
    columns_needed = 2
    label_kind = "class"

    def __init__(self, settings: ClassificationSettings, *, dimension: int, num_labels: int) -> None:
        super().__init__()
        self.parts = tuple(part for part in PARTS if part in settings.parts)
        self.num_labels = num_labels
        self.head = nn.Linear(len(self.parts) * dimension, num_labels)

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Classification:
        """Make the objective with a fresh head of `num_labels` outputs."""
        settings = read_settings(ClassificationSettings, values, where="objective 'classification'")
        if num_labels is None or num_labels < 2:
            raise UsageError(f"objective 'classification': found {num_labels or 0} classes, expected two or more\n  check the label column")
        return cls(settings, dimension=dimension, num_labels=num_labels)

    def logits(self, columns: Sequence[Tensor]) -> Tensor:
        """Return the class scores before the softmax, shape (B, K); their argmax is the predicted class."""
        u_BD, v_BD = columns
        made = {"u": u_BD, "v": v_BD, "|u-v|": (u_BD - v_BD).abs(), "u*v": u_BD * v_BD}
        features_BF = torch.cat([made[part] for part in self.parts], dim=1)
        logits_BK: Tensor = self.head(features_BF.to(self.head.weight.dtype))
        return logits_BK

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean cross-entropy."""
        allowed_B = (labels >= 0) & (labels < self.num_labels) & (labels == labels.long())
        remedy = "the model's classes and the data's must be the same"
        refuse_labels_outside(self.name, labels, allowed_B=allowed_B, expected=f"a class 0 … {self.num_labels - 1}", remedy=remedy)
        return F.cross_entropy(self.logits(columns), labels.long())

    def describe(self) -> str:
        """Say which parts the classifier sees and how many classes there are."""
        return Message(TrainingWord.OBJECTIVE_CLASSIFICATION, parts=", ".join(self.parts), classes=self.num_labels)


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
class OrderSettings:
    """How sharply a wrong order is punished."""

    scale: float = 20.0

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "objectives 'cosent' and 'angle': scale must be more than 0")


class Cosent(Objective):
    """Puts the cosines of a batch into the order of its scores."""

    name = "cosent"
    word = TrainingWord.OBJECTIVE_COSENT
    settings_type = OrderSettings
    settings: OrderSettings
    columns_needed = 2
    label_kind = "score"
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the ordering loss of the similarities."""
        refuse_labels_outside(self.name, labels, allowed_B=labels.isfinite(), expected="a finite score", remedy="repair the label column")
        return ordering_loss(self.similarity(columns[0], columns[1]) * self.settings.scale, labels)

    def similarity(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Return what is put into order."""
        return cosine(u_BD, v_BD)


def ordering_loss(scores_B: Tensor, labels_B: Tensor) -> Tensor:
    """Return log(1 + Σ exp(s_k − s_i)) over all (k, i) where label k < label i; 0 where no two labels differ."""
    lower_BB = labels_B[:, None] < labels_B[None, :]
    excess_BB = (scores_B[:, None] - scores_B[None, :]).masked_fill(~lower_BB, -torch.inf)
    return torch.logsumexp(torch.cat([scores_B.new_zeros(1), excess_BB.flatten()]), dim=0)


class Angle(Cosent):
    """Puts the angle similarities of a batch into the order of its scores."""

    name = "angle"
    word = TrainingWord.OBJECTIVE_ANGLE

    def similarity(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Return what is put into order."""
        return angle_similarity(u_BD, v_BD)


def angle_similarity(u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return |cos + sin| of each row's two vectors read as complex ones; an odd dimension gets one zero more."""
    odd = u_BD.shape[1] % 2
    u_real, u_imaginary = F.pad(F.normalize(u_BD, dim=1), (0, odd)).chunk(2, dim=1)
    v_real, v_imaginary = F.pad(F.normalize(v_BD, dim=1), (0, odd)).chunk(2, dim=1)
    cosines_B = (u_real * v_real + u_imaginary * v_imaginary).sum(dim=1)
    sines_B = (u_imaginary * v_real - u_real * v_imaginary).sum(dim=1)
    return (cosines_B + sines_B).abs()


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
