"""Classification objective (the paper's for NLI): softmax(W_t [u; v; |u−v|]) against the class, cross-entropy.

The concatenation is a choice among u, v, |u−v| and u∗v, so that the paper's ablation can be run. The head lives here and is thrown away
after training, unless the stage keeps it (`keep_head`). Equal to sentence-transformers' SoftmaxLoss on the same weights (its linear layer
has a bias, so has this one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.engine.pair_head import PARTS, Part
from munjang.errors import UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import Objective, refuse_labels_outside
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
