"""Late interaction beside the sentence vector: in-batch negatives by the cosine of texts and by MaxSim of their tokens, in one pass.

Columns: question, the text that answers it, and any number of hard negatives, as for in-batch negatives. The loss is the cross-entropy of
the own answer among all candidates of the batch, once with the cosines of the sentence vectors and once, with a weight, with MaxSim: the
mean over the question's tokens of the best cosine with a token of the candidate (Khattab and Zaharia, 2020). Tokens are the last layer's
rows without special ones, centred by their mean over the batch, as a library compares them. With `one_bit` a candidate's tokens count by
their signs alone, as a library stores them; the gradient passes as if they were whole. So one encoder learns to find passages by their
vector and to re-rank them by the token vectors of the same pass.

A text's row holds its vector and its tokens: B rows of D + L × D numbers, where L is the setting `tokens` and rows of zeros are padding.

Shapes: B rows, N candidates, M tokens, Q and T of the longest question and candidate, L of a row, D dimensions, W width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.train.objectives.base import Objective, all_pairs
from munjang.train.packing import PackedTexts
from munjang.train.settings import refuse_unless


@dataclass(frozen=True)
class LateInteractionSettings:
    """What cosines and MaxSim are multiplied by, the weight of MaxSim, how many tokens of a text count, and whether by their signs."""

    scale: float = 20.0
    late_scale: float = 20.0
    late_weight: float = 1.0
    tokens: int = 256
    one_bit: bool = False

    def __post_init__(self) -> None:
        for name in ("scale", "late_scale", "tokens"):
            refuse_unless(getattr(self, name) > 0, f"objective 'late_interaction': {name} must be more than 0")
        refuse_unless(self.late_weight >= 0, "objective 'late_interaction': late_weight must not be negative")


class LateInteraction(Objective):
    """Cross-entropy of the own answer by sentence vectors, and by token vectors."""

    name = "late_interaction"
    word = TrainingWord.OBJECTIVE_LATE_INTERACTION
    settings_type = LateInteractionSettings
    settings: LateInteractionSettings
    columns_needed = "2+"
    needs_no_duplicates = True
    compares_rows = True

    def attach(self, encoder: Any, used: Sequence[int]) -> None:  # noqa: ARG002
        """Take the special tokens, which do not count, and the sizes of vectors and tokens."""
        self.special = sorted(int(piece) for piece in encoder.tokenizer.all_special_ids)
        self.dimension, self.width = int(encoder.dimension), int(encoder.base.config.hidden_size)

    def encode(self, encoder: Any, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return each column's texts as their vector and their tokens."""
        count, length = len(ids[0]), self.settings.tokens
        if not count:
            size = self.dimension + length * self.width
            return [torch.zeros(0, size, device=encoder.device, requires_grad=True) for _ in ids]
        hidden_TW, packed, vectors_ND = encoder.hidden_and_vectors([text for column in ids for text in column])
        is_special_T = torch.isin(packed.ids_T, torch.tensor(self.special, device=packed.ids_T.device))
        # special tokens stand at a text's beginning and end: the row of the first token is never one that counts
        tokens_NX = lay_tokens(hidden_TW, packed, length=length, first=1, kept_T=~is_special_T)
        rows_NX = torch.cat([vectors_ND, tokens_NX], dim=1)
        return list(torch.split(rows_NX, count))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean cross-entropy of sentence vectors, and of MaxSim with its weight."""
        candidates_NX = torch.cat(columns[1:])
        own_B = torch.arange(len(columns[0]), device=candidates_NX.device)
        cosine_BN = all_pairs("cosine", columns[0][:, : self.dimension], candidates_NX[:, : self.dimension])
        by_text = F.cross_entropy(cosine_BN * self.settings.scale, own_B)
        asked, there = self._split(columns[0]), self._split(candidates_NX)
        all_MW = torch.cat([rows[real] for rows, real in (asked, there)]).detach()
        centre_W = all_MW.mean(dim=0)
        stored_NTW = there[0] - centre_W
        if self.settings.one_bit:
            # as a library stores them; the gradient of a sign is that of its value
            signs_NTW = torch.sign(stored_NTW) * (all_MW - centre_W).abs().mean(dim=0)
            stored_NTW = stored_NTW + (signs_NTW - stored_NTW).detach()
        score_BN = score_maxsim(asked[0] - centre_W, asked[1], stored_NTW, there[1])
        return by_text + self.settings.late_weight * F.cross_entropy(score_BN * self.settings.late_scale, own_B)

    def _split(self, rows_BX: Tensor) -> tuple[Tensor, Tensor]:
        return split_tokens(rows_BX[:, self.dimension :], self.width)


def lay_tokens(rows_TW: Tensor, packed: PackedTexts, *, length: int, first: int = 0, kept_T: Tensor | None = None) -> Tensor:
    """Return each text's token rows side by side, (N, length × W), in the texts' own order: from position `first`, padded with zeros."""
    places_T = packed.positions_T - first
    inside_T = (places_T >= 0) & (places_T < length)
    kept_T = inside_T if kept_T is None else kept_T & inside_T
    count, width = len(packed.lengths_N), rows_TW.shape[1]
    text_T = torch.arange(count, device=rows_TW.device).repeat_interleave(packed.lengths_N)
    padded = rows_TW.new_zeros(count * length, width).index_copy(0, (text_T * length + places_T)[kept_T], rows_TW[kept_T])
    return padded.view(count, -1)[packed.order_N]


def split_tokens(rows_BX: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return what `lay_tokens` laid as unit rows, up to the longest text, and which of them are tokens."""
    rows_BLW = F.normalize(rows_BX.reshape(len(rows_BX), -1, width), dim=-1)
    real_BL = rows_BLW.detach().abs().sum(dim=-1) > 0
    longest = max(int(real_BL.any(dim=0).sum()), 1)
    return rows_BLW[:, :longest], real_BL[:, :longest]


def score_maxsim(queries_BQD: Tensor, asked_BQ: Tensor, texts_NTD: Tensor, real_NT: Tensor) -> Tensor:
    """Return the mean MaxSim of each query with each text, (B, N)."""
    queries_BQD, texts_NTD = F.normalize(queries_BQD, dim=-1), F.normalize(texts_NTD, dim=-1)
    cosine_BQNT = torch.einsum("bqd,ntd->bqnt", queries_BQD, texts_NTD).masked_fill(~real_NT[None, None], -1e4)
    best_BQN = cosine_BQNT.amax(dim=-1) * asked_BQ[..., None]
    return best_BQN.sum(dim=1) / asked_BQ.sum(dim=1, keepdim=True).clamp(min=1)
