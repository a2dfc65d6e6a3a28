"""Masked language modelling: some pieces of a text are hidden, and the model guesses them from the others.

The last layer's row of each hidden piece passes a head and is compared with the word embeddings, which are the encoder's own. Equal to
transformers' ForMaskedLM models with `candidates = "all"` and the same hidden pieces. It trains token rows, not sentence vectors: go on
with an objective over sentences. Of the pieces chosen, 80 % become the mask, 10 % a random piece, 10 % stay; special tokens are never
chosen. With whole words the draw is per word: all of its pieces or none.

Shapes: T pieces of all texts, A pieces that random ones are drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from munjang.errors import UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.adapt.text_objective import Candidates, Guesses, MlmHead, TextObjective, get_vocabulary_size, make_no_rows
from munjang.train.encoder import TrainableEncoder
from munjang.train.settings import refuse_unless

MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Masked:
    """What the model sees, and where it must guess."""

    ids_T: Tensor
    chosen_T: Tensor


def mask_pieces(ids_T: Tensor, *, special_T: Tensor, share: float, mask: int, drawn_A: Tensor, starts_T: Tensor | None = None) -> Masked:
    """Hide `share` of the pieces; `starts_T` says which pieces begin a word, where words are hidden whole."""
    if starts_T is None:
        chance_T = torch.rand(len(ids_T), device=ids_T.device)
    else:
        word_T = (starts_T | special_T).long().cumsum(0)
        chance_T = torch.rand(int(word_T[-1]) + 1, device=ids_T.device)[word_T]
    chosen_T = (chance_T < share) & ~special_T
    kind_T = torch.rand(len(ids_T), device=ids_T.device)
    random_T = drawn_A[torch.randint(len(drawn_A), (len(ids_T),), device=ids_T.device)]
    seen_T = torch.where(chosen_T & (kind_T < MASKED), torch.full_like(ids_T, mask), ids_T)
    seen_T = torch.where(chosen_T & (kind_T >= MASKED) & (kind_T < MASKED + RANDOM), random_T, seen_T)
    return Masked(seen_T, chosen_T)


def find_word_starts(tokenizer: Any, count: int) -> Tensor:
    """Return for each piece of a vocabulary of `count` whether it begins a word, by the mark of its kind: ##, ▁ or Ġ."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    starts_V = torch.ones(count, dtype=torch.bool)
    marked = [mark for mark in ("▁", "Ġ") if sum(piece.startswith(mark) for piece in vocabulary) > 1]
    for piece, number in vocabulary.items():
        if number < count:
            starts_V[number] = piece.startswith(marked[0]) if marked else not piece.startswith("##")
    return starts_V


@dataclass(frozen=True)
class MlmSettings:
    """`share` of the pieces is hidden, word by word if `whole_words`; `candidates` are the pieces that a guess chooses among."""

    share: float = 0.15
    whole_words: bool = False
    candidates: Candidates = "data"

    def __post_init__(self) -> None:
        refuse_unless(0 < self.share < 1, f"objective 'mlm': share is {self.share:g}, expected more than 0 and less than 1")


class Mlm(TextObjective):
    """Cross-entropy of hidden tokens."""

    name = "mlm"
    settings_type = MlmSettings
    settings: MlmSettings
    head: MlmHead

    def __init__(self, settings: MlmSettings) -> None:
        super().__init__(settings.candidates)
        self.settings = settings
        self.special_V: Tensor
        self.starts_V: Tensor
        self.register_buffer("special_V", torch.empty(0, dtype=torch.bool), persistent=False)
        self.register_buffer("starts_V", torch.empty(0, dtype=torch.bool), persistent=False)

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:
        """Make the head, from the model's folder if it is there."""
        mask = encoder.tokenizer.mask_token_id
        if mask is None:
            raise UsageError("objective 'mlm': the tokenizer has no mask token\n  use tsdae or simcse, which need none")
        self.mask = int(mask)
        super().attach(encoder, used)
        count = get_vocabulary_size(encoder)
        self.special_V = torch.zeros(count, dtype=torch.bool)
        self.special_V[encoder.tokenizer.all_special_ids] = True
        self.starts_V = find_word_starts(encoder.tokenizer, count)
        self.drawn_A = self.candidates_A[~self.special_V[self.candidates_A]]
        self.head = MlmHead(encoder, count)

    def own_pieces(self, encoder: TrainableEncoder) -> Sequence[int]:
        """Return the mask."""
        return (int(encoder.tokenizer.mask_token_id),)

    def encode(self, encoder: TrainableEncoder, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return each row's sum and count of losses."""
        rows = len(ids[0])
        if not rows:
            return make_no_rows(encoder)
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
        return [self.score_guesses(encoder, guesses, bias_V=self.head.bias_V, rows=rows)]

    def describe(self) -> str:
        """Say how much is hidden, and where the head came from."""
        what = Message(TrainingWord.WHOLE_WORDS if self.settings.whole_words else TrainingWord.PIECES)
        among = Message(TrainingWord.PIECES_OF_DATA if self.settings.candidates == "data" else TrainingWord.WHOLE_VOCABULARY)
        return Message(TrainingWord.OBJECTIVE_MLM, share=self.settings.share, what=what, among=among)
