"""Token distillation: the student's last rows, token by token, and its vector of a text follow those of a teacher with the same tokens.

For a student with fewer layers than its teacher. A sentence vector says one thing about a text, its tokens say as many as it has: the
student learns more from each text, and its token vectors serve late interaction as the teacher's do. The loss is the squared distance of
the tokens, as a share of how far the teacher's tokens stand from their mean, times a weight, and the squared distance of the sentence
vectors. The teacher runs in torch, beside the student, since its rows of all tokens would fill a disk.

Each row of a batch gives four numbers: the sum of its tokens' squared distances, that of the teacher's from the mean, how many tokens it
has, and the distance of its vector. So the loss is that of the whole batch, however it is cut.

Shapes: B rows, T tokens, W width, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from munjang.errors import UsageError
from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Objective, to_float32
from munjang.train.settings import refuse_unless


@dataclass(frozen=True)
class TokenDistillationSettings:
    """The weight of the tokens' part."""

    token_weight: float = 1.0

    def __post_init__(self) -> None:
        refuse_unless(self.token_weight >= 0, "objective 'token_distillation': token_weight must not be negative")


class TokenDistillation(Objective):
    """Squared distance from the teacher's tokens and vectors."""

    name = "token_distillation"
    word = TrainingWord.OBJECTIVE_TOKEN_DISTILLATION
    settings_type = TokenDistillationSettings
    settings: TokenDistillationSettings
    columns_needed = "1+"
    needs_teacher_model = True
    compares_rows = True
    least_rows = 1

    def attach_teacher(self, teacher: Any, encoder: Any) -> None:
        """Take the teacher; one with other tokens or another width is refused."""
        name = Path(teacher.folder).name if teacher.folder else "the teacher"
        if teacher.tokenizer.get_vocab() != encoder.tokenizer.get_vocab():
            raise UsageError(f"objective 'token_distillation': {name} has another vocabulary than the student\n  name distillation instead")
        sizes = [(int(each.base.config.hidden_size), each.dimension) for each in (teacher, encoder)]
        if sizes[0] != sizes[1]:
            raise UsageError(
                f"objective 'token_distillation': {name} has {sizes[0][0]} numbers a token and {sizes[0][1]} a text, the student "
                f"{sizes[1][0]} and {sizes[1][1]}, expected the same\n  name distillation instead"
            )
        teacher.eval().requires_grad_(False)
        # in a tuple, so that torch does not take it for a part of the objective: it is not trained and not saved
        self.teacher = (teacher.to(encoder.device),)

    def encode(self, encoder: Any, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return four numbers for each text, column by column."""
        if not ids[0]:
            return [torch.zeros(0, 4, device=encoder.device, requires_grad=True) for _ in ids]
        texts = [text for column in ids for text in column]
        with torch.no_grad():
            taught_TW, _, taught_ND = (to_float32(each) if isinstance(each, Tensor) else each for each in self._ask(encoder, texts))
        hidden_TW, packed, vectors_ND = encoder.hidden_and_vectors(texts)
        apart_T = (to_float32(hidden_TW) - taught_TW).square().sum(dim=1)
        spread_T = (taught_TW - taught_TW.mean(dim=0)).square().sum(dim=1)
        text_T = torch.arange(len(texts), device=apart_T.device).repeat_interleave(packed.lengths_N)
        sums_N2 = apart_T.new_zeros(len(texts), 2).index_add(0, text_T, torch.stack([apart_T, spread_T], dim=1))[packed.order_N]
        counts_N = packed.lengths_N[packed.order_N].to(sums_N2)
        by_text_N = (to_float32(vectors_ND) - taught_ND).square().sum(dim=1)
        rows_N4 = torch.cat([sums_N2, counts_N[:, None], by_text_N[:, None]], dim=1)
        return list(torch.split(rows_N4, len(ids[0])))

    def _ask(self, encoder: Any, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Any, Tensor]:
        teacher = self.teacher[0].to(encoder.device)
        found: tuple[Tensor, Any, Tensor] = teacher.hidden_and_vectors(texts)
        return found

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the share of the tokens' spread that is missed, times its weight, and the mean distance of the vectors."""
        rows_N4 = torch.cat(columns)
        apart, spread = rows_N4[:, 0].sum(), rows_N4[:, 1].sum()
        return self.settings.token_weight * apart / spread.clamp(min=1e-6) + rows_N4[:, 3].mean()
