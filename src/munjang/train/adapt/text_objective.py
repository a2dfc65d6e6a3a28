"""An objective over plain text: it guesses pieces of the text itself, so there are no labels.

In: token ids of one text a row. Out: one column with two numbers a row, the sum of its pieces' losses and their count, so that the loss is
the mean over all pieces of the batch, however the batch is cut into parts or spread over processes. Heads are made when the encoder is
known (`attach`), learn with it, and are thrown away with the objective.

Shapes: B rows, M pieces that are guessed, A candidates for each of them, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.train.adapt.widths import vocabulary_size
from munjang.train.compact import CompactEmbedding
from munjang.train.encoder import TrainableEncoder
from munjang.train.objectives.base import Objective

Candidates: TypeAlias = Literal["data", "all"]
"""Which pieces a guess chooses among: those of the data, so that the others keep their embeddings, or the whole vocabulary as BERT does."""


@dataclass(frozen=True)
class Guesses:
    """A row in the space of word embeddings for each piece that is guessed, the piece it must name, and the batch's row it belongs to."""

    guesses_MD: Tensor
    targets_M: Tensor
    rows_M: Tensor


class TextObjective(Objective):
    """The mean loss of guessed pieces."""

    columns_needed = 1
    compares_rows = True
    least_rows = 1

    def __init__(self, candidates: Candidates) -> None:
        super().__init__()
        self._candidates = candidates
        self.candidates_A: Tensor
        self.places_V: Tensor
        self.register_buffer("candidates_A", torch.empty(0, dtype=torch.long), persistent=False)
        self.register_buffer("places_V", torch.empty(0, dtype=torch.long), persistent=False)

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:
        """Take the candidates; a subclass makes its head."""
        count = vocabulary_size(encoder)
        chosen = range(count) if self._candidates == "all" else sorted({*used, *self.own_pieces(encoder)})
        self.candidates_A = torch.tensor(list(chosen), dtype=torch.long)
        self.places_V = torch.full((count,), -1, dtype=torch.long)
        self.places_V[self.candidates_A] = torch.arange(len(self.candidates_A))

    def own_pieces(self, encoder: TrainableEncoder) -> Sequence[int]:  # noqa: ARG002
        """Return pieces that it puts into the text itself."""
        return ()

    def pieces(self, used: Sequence[int]) -> Sequence[int] | None:  # noqa: ARG002
        """Return the candidates, all of which learn."""
        return None if self._candidates == "all" else self.candidates_A.tolist()

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean over the batch's guessed pieces; 0 where there are none."""
        sums_and_counts_B2 = columns[0]
        total_2 = sums_and_counts_B2.sum(dim=0)
        return total_2[0] / total_2[1].clamp(min=1)

    def scored(self, encoder: TrainableEncoder, guesses: Guesses, *, bias_V: Tensor, rows: int) -> Tensor:
        """Return each row's sum and count of losses: the guess's product with every candidate's embedding must name the target."""
        logits_MA = F.linear(guesses.guesses_MD, word_rows(encoder, self.candidates_A), bias_V[self.candidates_A])
        losses_M = F.cross_entropy(logits_MA.float(), self.places_V[guesses.targets_M], reduction="none")
        sums_B = losses_M.new_zeros(rows).index_add(0, guesses.rows_M, losses_M)
        counts_B = torch.bincount(guesses.rows_M, minlength=rows).to(sums_B.dtype)
        return torch.stack([sums_B, counts_B], dim=1)


def word_rows(encoder: TrainableEncoder, ids_A: Tensor) -> Tensor:
    """Return the embeddings of some pieces, tied: their gradient is that of the encoder's own table."""
    words = encoder.words
    if isinstance(words, CompactEmbedding):
        return words.weight[words.slots_V[ids_A]]
    weight_VD: Tensor = words.weight  # type: ignore[assignment]
    return weight_VD if len(ids_A) == len(weight_VD) else weight_VD[ids_A]


def no_rows(encoder: TrainableEncoder) -> list[Tensor]:
    """Return the column of a process that got no rows."""
    return [torch.zeros(0, 2, device=encoder.device, requires_grad=True)]
