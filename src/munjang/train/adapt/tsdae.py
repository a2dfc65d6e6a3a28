"""TSDAE (Wang et al. 2021): a text loses most of its pieces, and a decoder writes the whole text from the sentence vector of what is left.

The vector is all that the decoder knows of the text, so it must hold the text's meaning. Same loss as sentence-transformers'
DenoisingAutoEncoderLoss: cross-entropy of each next piece, given the pieces before it. Pieces are deleted, not words.

In the decoder, attention over one vector gives that vector whatever is asked, so the cross attention is its two projections, value and
out. Layers start as copies of the encoder's where the family is known; word embeddings are the encoder's own, and the head is that of a
masked language model. All of it is thrown away after training.

Shapes: N texts, L pieces of the longest, D width, E width of word embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.report.training_words import TrainingWord
from munjang.train.adapt.text_objective import (
    Candidates,
    Guesses,
    MlmHead,
    TextObjective,
    get_activation,
    get_embedding_width,
    get_hidden_width,
    get_vocabulary_size,
    make_no_rows,
)
from munjang.train.encoder import Normalize, TrainableEncoder
from munjang.train.packing import PartsLayer
from munjang.train.settings import refuse_unless


class DecoderLayer(nn.Module):
    """Attention to the pieces before, the sentence vector, and the inner layer, each added and normed."""

    def __init__(self, width: int, inner: int, heads: int, *, eps: float, dropout: float, activation: nn.Module) -> None:
        super().__init__()
        self.heads, self.rate, self.activation = heads, dropout, activation
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.memory_value, self.memory_out = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=eps) for _ in range(3))

    def forward(self, hidden_NLD: Tensor, memory_ND: Tensor) -> Tensor:
        """Return the rows after the layer; a row sees the rows before it and the memory."""
        count, length, width = hidden_NLD.shape
        shaped = self.qkv(hidden_NLD).view(count, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        # texts are padded at their ends, and no piece looks ahead, so padding needs no mask
        attended = F.scaled_dot_product_attention(shaped[0], shaped[1], shaped[2], is_causal=True, dropout_p=rate)
        hidden_NLD = self.norms[0](hidden_NLD + self._drop(self.out(attended.transpose(1, 2).reshape(count, length, width))))
        told_ND = self.memory_out(self.memory_value(memory_ND))
        hidden_NLD = self.norms[1](hidden_NLD + self._drop(told_ND[:, None, :]))
        made: Tensor = self.norms[2](hidden_NLD + self._drop(self.down(self.activation(self.up(hidden_NLD)))))
        return made

    def copy_from(self, layer: PartsLayer) -> None:
        """Take the encoder layer's weights where there is a counterpart."""
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]))
            self.qkv.bias.copy_(torch.cat([layer.query.bias, layer.key.bias, layer.value.bias]))
        for own, theirs in ((self.out, layer.out), (self.up, layer.up), (self.down, layer.down)):
            own.load_state_dict(theirs.state_dict())
        self.norms[0].load_state_dict(layer.attention_norm.state_dict())
        self.norms[2].load_state_dict(layer.final_norm.state_dict())

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.rate, self.training)


class Decoder(nn.Module):
    """Guesses the next piece of each text."""

    def __init__(self, encoder: TrainableEncoder, *, layers: int | None, positions: int) -> None:
        super().__init__()
        config: Any = encoder.backbone.config
        width, narrow = get_hidden_width(encoder), get_embedding_width(encoder)
        std = float(getattr(config, "initializer_range", 0.02))
        inner = int(getattr(config, "intermediate_size", None) or config.hidden_dim)
        rate = float(getattr(config, "hidden_dropout_prob", None) or getattr(config, "dropout", None) or 0.0)
        eps = float(getattr(config, "layer_norm_eps", 1e-12))
        sizes = (width, inner, int(config.num_attention_heads))
        count = layers or int(config.num_hidden_layers)
        self.layers = nn.ModuleList(DecoderLayer(*sizes, eps=eps, dropout=rate, activation=get_activation(config)) for _ in range(count))
        self.positions, self.norm = nn.Embedding(positions, narrow), nn.LayerNorm(narrow, eps=eps)
        self.widen = nn.Linear(narrow, width) if narrow != width else nn.Identity()
        self.memory = nn.Linear(encoder.dimension, width) if encoder.dimension != width else nn.Identity()
        self.rate = rate
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        self.head = MlmHead(encoder, get_vocabulary_size(encoder))
        self._copy(encoder)

    def forward(self, words_NLE: Tensor, vectors_ND: Tensor) -> Tensor:
        """Return a row of the word embeddings' width for each place, which must name the next piece."""
        places_L = torch.arange(words_NLE.shape[1], device=words_NLE.device)
        hidden_NLE = self.norm(words_NLE + self.positions(places_L))
        hidden_NLD = self.widen(F.dropout(hidden_NLE, self.rate, self.training))
        memory_ND = self.memory(vectors_ND)
        for layer in self.layers:
            hidden_NLD = layer(hidden_NLD, memory_ND)
        guesses: Tensor = self.head(hidden_NLD)
        return guesses

    def _copy(self, encoder: TrainableEncoder) -> None:
        """Start from the encoder's embeddings and its last layers."""
        parts = encoder.parts
        if parts is None:
            return
        first = parts.first_position
        count = min(len(self.positions.weight), len(parts.positions.weight) - first)
        with torch.no_grad():
            self.positions.weight[:count] = parts.positions.weight[first : first + count]
            if parts.types is not None:  # all pieces are of the first segment
                self.positions.weight[:count] += parts.types.weight[0]
        self.norm.load_state_dict(parts.embedding_norm.state_dict())
        if parts.project is not None:
            self.widen.load_state_dict(parts.project.state_dict())
        for own, theirs in zip(reversed(self.layers), reversed(parts.layers), strict=False):
            assert isinstance(own, DecoderLayer)
            own.copy_from(theirs)


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
    """Cross-entropy of the text, token by token, given its vector."""

    name = "tsdae"
    word = TrainingWord.OBJECTIVE_TSDAE
    settings_type = TsdaeSettings
    settings: TsdaeSettings
    decoder: Decoder

    def __init__(self, settings: TsdaeSettings) -> None:
        super().__init__(settings.candidates)
        self.settings = settings

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
            return make_no_rows(encoder)
        texts = [torch.as_tensor(text, dtype=torch.long) for column in ids for text in column]
        vectors_ND = encoder([delete_pieces(text, share=self.settings.share, kept=self.kept).numpy() for text in texts])
        whole_NL = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=int(texts[0][0])).to(encoder.device)
        lengths_N = torch.tensor([len(text) for text in texts], device=encoder.device)
        guesses_NLE = self.decoder(encoder.words(whole_NL[:, :-1]), vectors_ND * self.scale)
        real_NL = torch.arange(1, whole_NL.shape[1], device=encoder.device)[None, :] < lengths_N[:, None]
        rows_NL = (torch.arange(len(texts), device=encoder.device) % rows)[:, None].expand_as(real_NL)
        guesses = Guesses(guesses_NLE[real_NL], whole_NL[:, 1:][real_NL], rows_NL[real_NL])
        return [self.score_guesses(encoder, guesses, bias_V=self.decoder.head.bias_V, rows=rows)]


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
