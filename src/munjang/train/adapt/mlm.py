"""Masked language modelling: some pieces of a text are hidden, and the model guesses them from the others.

The last layer's row of each hidden piece passes a head and is compared with the word embeddings, which are the encoder's own. Equal to
transformers' ForMaskedLM models with `candidates = "all"` and the same hidden pieces. It trains token rows, not sentence vectors: go on
with an objective over sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from munjang.errors import UsageError
from munjang.report.words import Message, Word
from munjang.train.adapt.masking import mask_pieces, word_starts
from munjang.train.adapt.mlm_head import MlmHead
from munjang.train.adapt.text_objective import Candidates, Guesses, TextObjective, no_rows
from munjang.train.adapt.widths import vocabulary_size
from munjang.train.encoder import TrainableEncoder
from munjang.train.objectives.settings import read_settings, refuse_unless


@dataclass(frozen=True)
class MlmSettings:
    """`share` of the pieces is hidden, word by word if `whole_words`; `candidates` are the pieces that a guess chooses among."""

    share: float = 0.15
    whole_words: bool = False
    candidates: Candidates = "data"

    def __post_init__(self) -> None:
        refuse_unless(0 < self.share < 1, f"objective 'mlm': share is {self.share:g}, expected more than 0 and less than 1")


class Mlm(TextObjective):
    """Cross-entropy of hidden pieces."""

    name = "mlm"
    head: MlmHead

    def __init__(self, settings: MlmSettings) -> None:
        super().__init__(settings.candidates)
        self.settings = settings
        self.special_V: Tensor
        self.starts_V: Tensor
        self.register_buffer("special_V", torch.empty(0, dtype=torch.bool), persistent=False)
        self.register_buffer("starts_V", torch.empty(0, dtype=torch.bool), persistent=False)

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Mlm:  # noqa: ARG003
        """Make the objective; its head comes with `attach`."""
        return cls(read_settings(MlmSettings, values, where="objective 'mlm'"))

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:
        """Make the head, from the model's folder if it is there."""
        mask = encoder.tokenizer.mask_token_id
        if mask is None:
            raise UsageError("objective 'mlm': the tokenizer has no mask token\n  use tsdae or simcse, which need none")
        self.mask = int(mask)
        super().attach(encoder, used)
        count = vocabulary_size(encoder)
        self.special_V = torch.zeros(count, dtype=torch.bool)
        self.special_V[encoder.tokenizer.all_special_ids] = True
        self.starts_V = word_starts(encoder.tokenizer, count)
        self.drawn_A = self.candidates_A[~self.special_V[self.candidates_A]]
        self.head = MlmHead(encoder, count)

    def own_pieces(self, encoder: TrainableEncoder) -> Sequence[int]:
        """Return the mask."""
        return (int(encoder.tokenizer.mask_token_id),)

    def encode(self, encoder: TrainableEncoder, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return each row's sum and count of losses."""
        rows = len(ids[0])
        if not rows:
            return no_rows(encoder)
        texts = [torch.as_tensor(text, dtype=torch.long) for column in ids for text in column]
        lengths = [len(text) for text in texts]
        ids_T = torch.cat(texts)
        masked = mask_pieces(
            ids_T,
            special_T=self.special_V.cpu()[ids_T],
            share=self.settings.share,
            mask=self.mask,
            drawn_A=self.drawn_A,
            starts_T=self.starts_V.cpu()[ids_T] if self.settings.whole_words else None,
        )
        hidden_TD, packed = encoder.hidden([part.tolist() for part in torch.split(masked.ids_T, lengths)])
        # the plan holds texts in its own order, longest first
        order = packed.order_N.argsort().tolist()
        chosen = torch.split(masked.chosen_T, lengths)
        chosen_T = torch.cat([chosen[place] for place in order]).to(encoder.device)
        targets_T = torch.cat([texts[place] for place in order]).to(encoder.device)
        rows_T = torch.cat([torch.full((lengths[place],), place % rows) for place in order]).to(encoder.device)
        guesses = Guesses(self.head(hidden_TD[chosen_T]), targets_T[chosen_T], rows_T[chosen_T])
        return [self.scored(encoder, guesses, bias_V=self.head.bias_V, rows=rows)]

    def describe(self) -> str:
        """Say how much is hidden, and where the head came from."""
        what = Message(Word.WHOLE_WORDS if self.settings.whole_words else Word.PIECES)
        among = Message(Word.PIECES_OF_DATA if self.settings.candidates == "data" else Word.WHOLE_VOCABULARY)
        return Message(Word.OBJECTIVE_MLM, share=self.settings.share, what=what, among=among)
