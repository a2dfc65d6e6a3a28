"""Objectives of multi-vector models: MaxSim of a question's tokens with a text's tells its own text from the others of the batch.

Columns: question, the text that answers it, and any number of hard negatives. A token's vector is the last layer's row after the modules
behind it (a multi-vector model's projection); all tokens count, as the saved folder compares them. `maxsim` is the cross-entropy of the own
text among all of the batch (Khattab and Zaharia, 2020). `maxsim_scores` follows a teacher's scores of a row's own texts: the
Kullback-Leibler divergence of the student's softmax over them from the teacher's, with the cross-entropy beside it. `dims` trains leading
dimensions for themselves, so that token vectors may be cut (Matryoshka).

Shapes: B rows, C columns without the question's, N texts of a batch, X numbers of a text's row, Q and T tokens, D dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Objective
from munjang.train.objectives.late_interaction import lay_tokens, score_maxsim, split_tokens
from munjang.train.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class MaxSimSettings:
    """What MaxSim is multiplied by, how many tokens of a text count, and leading dimensions that are trained for themselves too."""

    scale: float = 20.0
    tokens: int = 256
    dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("scale", "tokens"):
            refuse_unless(getattr(self, name) > 0, f"objective 'maxsim': {name} must be more than 0")
        refuse_unless(min(self.dims, default=2) > 1, f"objective 'maxsim': dims holds {min(self.dims, default=2)}, expected 2 or more")


class MaxSim(Objective):
    """Cross-entropy of the own text among all of the batch, by MaxSim."""

    name = "maxsim"
    word = TrainingWord.OBJECTIVE_MAXSIM
    settings_type = MaxSimSettings
    settings: MaxSimSettings
    columns_needed = "2+"
    needs_no_duplicates = True
    compares_rows = True

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Self:  # noqa: ARG003
        """Make the objective; dimensions that a token's vector does not have are refused."""
        settings = read_settings(cls.settings_type, values, where=f"objective {cls.name!r}")
        if max(settings.dims, default=0) > dimension:
            raise UsageError(f"objective {cls.name!r}: dims holds {max(settings.dims)}, a token's vector has {dimension} dimensions")
        return cls(settings)

    def attach(self, encoder: Any, used: Sequence[int]) -> None:  # noqa: ARG002
        """Take the size of a token's vector."""
        self.dimension = int(encoder.dimension)

    def encode(self, encoder: Any, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return each column's texts as their token vectors."""
        count, length = len(ids[0]), self.settings.tokens
        if not count:
            return [torch.zeros(0, length * self.dimension, device=encoder.device, requires_grad=True) for _ in ids]
        hidden_TW, packed = encoder.hidden([text for column in ids for text in column])
        return list(torch.split(lay_tokens(encoder.tail(hidden_TW), packed, length=length), count))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean loss over all wanted numbers of dimensions."""
        asked_BQD, is_asked_BQ = split_tokens(columns[0], self.dimension)
        there_NTD, is_there_NT = split_tokens(torch.cat(columns[1:]), self.dimension)
        sizes = sorted({*self.settings.dims, self.dimension})
        scores = [score_maxsim(asked_BQD[..., :size], is_asked_BQ, there_NTD[..., :size], is_there_NT) for size in sizes]
        return torch.stack([self.compare(score_BN * self.settings.scale, labels) for score_BN in scores]).mean()

    def compare(self, score_BN: Tensor, labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the loss of one size's scores; a row's own text is the one of its number."""
        return F.cross_entropy(score_BN, torch.arange(len(score_BN), device=score_BN.device))


@dataclass(frozen=True)
class MaxSimScoresSettings(MaxSimSettings):
    """The same, with what the teacher's scores are multiplied by, and the weight of the cross-entropy over the batch."""

    teacher_scale: float = 1.0
    batch_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(self.teacher_scale > 0, "objective 'maxsim_scores': teacher_scale must be more than 0")
        refuse_unless(self.batch_weight >= 0, "objective 'maxsim_scores': batch_weight must not be negative")


class MaxSimScores(MaxSim):
    """Divergence of MaxSim over a row's own texts from a teacher's scores of them."""

    name = "maxsim_scores"
    word = TrainingWord.OBJECTIVE_MAXSIM_SCORES
    settings_type = MaxSimScoresSettings
    settings: MaxSimScoresSettings
    columns_needed = "3+"
    label_kind = "margins"

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean loss; a margin alone is no score of each text and is refused."""
        if labels.ndim != 2 or labels.shape[1] != len(columns) - 1:
            found = labels.shape[1] if labels.ndim == 2 else 1
            raise InputError(f"objective 'maxsim_scores': found {found} scores for {len(columns) - 1} texts a row, expected one for each")
        return super().loss(columns, labels)

    def compare(self, score_BN: Tensor, labels: Tensor) -> Tensor:
        """Return the divergence, and the cross-entropy with its weight."""
        rows = len(score_BN)
        own_BC = score_BN.view(rows, -1, rows).diagonal(dim1=0, dim2=2).T
        taught_BC = (labels * self.settings.teacher_scale).log_softmax(dim=1)
        apart = F.kl_div(own_BC.log_softmax(dim=1), taught_BC, reduction="batchmean", log_target=True)
        return apart + self.settings.batch_weight * super().compare(score_BN, labels)
