"""AnglE: CoSENT's ordering, with a similarity whose gradient does not die where the cosine is flat.

A vector's two halves are read as real and imaginary parts; the similarity is |cos(u, v) + sin(u, v)| in that space. Equal to
sentence-transformers' AnglELoss for scored pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from munjang.report.words import Message, Word
from munjang.train.objectives.base import Objective, refuse_labels_outside
from munjang.train.objectives.cosent import ordering_loss
from munjang.train.objectives.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class AngleSettings:
    """How sharply a wrong order is punished."""

    scale: float = 20.0

    def __post_init__(self) -> None:
        refuse_unless(self.scale > 0, "objective 'angle': scale must be more than 0")


class Angle(Objective):
    """Puts the angle similarities of a batch into the order of its scores."""

    name = "angle"
    columns_needed = 2
    label_kind = "score"
    compares_rows = True

    def __init__(self, settings: AngleSettings) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Angle:  # noqa: ARG003
        """Make the objective; it has no head."""
        return cls(read_settings(AngleSettings, values, where="objective 'angle'"))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the ordering loss of the angle similarities."""
        refuse_labels_outside(self.name, labels, allowed_B=labels.isfinite(), expected="a finite score", remedy="repair the label column")
        return ordering_loss(angle_similarity(columns[0], columns[1]) * self.settings.scale, labels)

    def describe(self) -> str:
        """Say the scale."""
        return Message(Word.OBJECTIVE_ANGLE, scale=self.settings.scale)


def angle_similarity(u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return |cos + sin| of each row's two vectors read as complex ones; an odd dimension gets one zero more."""
    odd = u_BD.shape[1] % 2
    u_real, u_imaginary = F.pad(F.normalize(u_BD, dim=1), (0, odd)).chunk(2, dim=1)
    v_real, v_imaginary = F.pad(F.normalize(v_BD, dim=1), (0, odd)).chunk(2, dim=1)
    cosines_B = (u_real * v_real + u_imaginary * v_imaginary).sum(dim=1)
    sines_B = (u_imaginary * v_real - u_real * v_imaginary).sum(dim=1)
    return (cosines_B + sines_B).abs()
