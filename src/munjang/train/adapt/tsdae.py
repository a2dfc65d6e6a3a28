"""TSDAE (Wang et al. 2021): a text loses most of its pieces, and a decoder writes the whole text from the sentence vector of what is left.

The vector is all that the decoder knows of the text, so it must hold the text's meaning. Same loss as sentence-transformers'
DenoisingAutoEncoderLoss: cross-entropy of each next piece, given the pieces before it. Pieces are deleted, not words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from munjang.report.words import Message, Word
from munjang.train.adapt.decoder import Decoder
from munjang.train.adapt.text_objective import Candidates, Guesses, TextObjective, no_rows
from munjang.train.encoder import TrainableEncoder
from munjang.train.objectives.settings import read_settings, refuse_unless
from munjang.train.tail import Normalize


@dataclass(frozen=True)
class TsdaeSettings:
    """`share` of the pieces is deleted. `layers` of the decoder; without it, as many as the encoder has."""

    share: float = 0.6
    layers: int | None = None
    candidates: Candidates = "data"

    def __post_init__(self) -> None:
        refuse_unless(0 <= self.share < 1, f"objective 'tsdae': share is {self.share:g}, expected 0 or more and less than 1")
        refuse_unless(self.layers is None or self.layers >= 1, "objective 'tsdae': layers must be 1 or more")


class Tsdae(TextObjective):
    """Cross-entropy of the text, piece by piece, given its vector."""

    name = "tsdae"
    decoder: Decoder

    def __init__(self, settings: TsdaeSettings) -> None:
        super().__init__(settings.candidates)
        self.settings = settings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Tsdae:  # noqa: ARG003
        """Make the objective; its decoder comes with `attach`."""
        return cls(read_settings(TsdaeSettings, values, where="objective 'tsdae'"))

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:
        """Make the decoder."""
        super().attach(encoder, used)
        self.decoder = Decoder(encoder, layers=self.settings.layers, positions=encoder.text.max_length)
        tokenizer = encoder.tokenizer
        self.kept = frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        # a vector of length one would be faint beside normed rows, whose length is √D
        self.scale = encoder.dimension**0.5 if any(isinstance(module, Normalize) for module in encoder.tail) else 1.0

    def encode(self, encoder: TrainableEncoder, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return each row's sum and count of losses."""
        rows = len(ids[0])
        if not rows:
            return no_rows(encoder)
        texts = [torch.as_tensor(text, dtype=torch.long) for column in ids for text in column]
        vectors_ND = encoder([delete_pieces(text, share=self.settings.share, kept=self.kept).numpy() for text in texts])
        whole_NL = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=int(texts[0][0])).to(encoder.device)
        lengths_N = torch.tensor([len(text) for text in texts], device=encoder.device)
        guesses_NLE = self.decoder(encoder.words(whole_NL[:, :-1]), vectors_ND * self.scale)
        real_NL = torch.arange(1, whole_NL.shape[1], device=encoder.device)[None, :] < lengths_N[:, None]
        rows_NL = (torch.arange(len(texts), device=encoder.device) % rows)[:, None].expand_as(real_NL)
        guesses = Guesses(guesses_NLE[real_NL], whole_NL[:, 1:][real_NL], rows_NL[real_NL])
        return [self.scored(encoder, guesses, bias_V=self.decoder.head.bias_V, rows=rows)]

    def describe(self) -> str:
        """Say how much is deleted."""
        return Message(Word.OBJECTIVE_TSDAE, share=self.settings.share)


def delete_pieces(ids_L: Tensor, *, share: float, kept: frozenset[int] = frozenset()) -> Tensor:
    """Return the pieces that are left when each is deleted with probability `share`; `kept` ones stay, and one of the others at least.

    >>> delete_pieces(torch.tensor([1, 7, 8, 2]), share=0.0).tolist()
    [1, 7, 8, 2]
    """
    chance_L = torch.rand(len(ids_L))
    stays_L = torch.tensor([piece in kept for piece in ids_L.tolist()])
    left_L = (chance_L >= share) | stays_L
    if not bool((left_L & ~stays_L).any()) and not bool(stays_L.all()):
        left_L[int(chance_L.masked_fill(stays_L, -1.0).argmax())] = True
    return ids_L[left_L]
