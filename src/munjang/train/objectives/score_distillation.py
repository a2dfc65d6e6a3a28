"""Score distillation: the student's similarities within a batch follow the teacher's.

A row's first text is compared with every candidate of the batch: the texts of all further columns, or, where rows have one text, the texts
of the other rows. The cosines, times a scale, become probabilities by a softmax, the student's and the teacher's, and the loss is the
Kullback-Leibler divergence of the student's from the teacher's, averaged over rows. Only what the teacher ranks, and by how much, is
learnt: its space need not be the student's, and no candidate is taken as wrong because it stands in another row.

Labels: the teacher's vectors of every column, (B, C, K). Shapes: B rows, C columns, N candidates, D and K dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Objective, all_pairs
from munjang.train.settings import refuse_unless


@dataclass(frozen=True)
class ScoreDistillationSettings:
    """What the student's and the teacher's cosines are multiplied by: more is sharper. A teacher whose cosines lie close needs more."""

    scale: float = 20.0
    teacher_scale: float = 20.0

    def __post_init__(self) -> None:
        for name in ("scale", "teacher_scale"):
            refuse_unless(getattr(self, name) > 0, f"objective 'score_distillation': {name} must be more than 0")


class ScoreDistillation(Objective):
    """Divergence of the similarities of a batch from the teacher's."""

    name = "score_distillation"
    word = TrainingWord.OBJECTIVE_SCORE_DISTILLATION
    settings_type = ScoreDistillationSettings
    settings: ScoreDistillationSettings
    columns_needed = "1+"
    label_kind = "vectors"
    learns_all_columns = True
    compares_rows = True

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean divergence of the rows."""
        if labels.ndim != 3 or labels.shape[1] != len(columns):
            raise InputError(
                f"objective 'score_distillation': the teacher's vectors are {tuple(labels.shape)}, expected one for each of the "
                f"{len(columns)} texts of {len(columns[0])} rows"
            )
        own_BN = _score_candidates(columns) * self.settings.scale
        taught_BN = _score_candidates(labels.unbind(dim=1)) * self.settings.teacher_scale
        return F.kl_div(own_BN.log_softmax(dim=1), taught_BN.log_softmax(dim=1), reduction="batchmean", log_target=True)


def _score_candidates(columns: Sequence[Tensor]) -> Tensor:
    """Return the cosine of each row's first text with every candidate."""
    if len(columns) > 1:
        return all_pairs("cosine", columns[0], torch.cat(list(columns[1:])))
    cosine_BB = all_pairs("cosine", columns[0], columns[0])
    count = len(cosine_BB)
    others_BB = ~torch.eye(count, dtype=torch.bool, device=cosine_BB.device)
    return cosine_BB[others_BB].view(count, count - 1)
