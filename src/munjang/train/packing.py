"""Token ids of many texts → one row of tokens without padding, and the plan by which attention runs over it.

In: a list of ids per text, in the caller's order. Out: `PackedTexts`: all tokens end to end, longest text first, cut into buckets of like
length. Only attention pads, and only inside a bucket; every other layer works on real tokens. What runs over the plan is in `packed.py`.

`Parts` says where each family of encoder keeps its layers, so that the packed pass is written once: references to the model's own modules,
or None for a family that is not here. BERT, RoBERTa, XLM-R, CamemBERT and ELECTRA share one shape; DistilBERT and MPNet have their own
names, MPNet a relative position bias too.

Shapes: T tokens of all texts, N texts, L tokens of a bucket's longest text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from munjang.wording import brief_repr

BUCKET_COST = 1500
"""What one more bucket costs, in squared tokens of attention: padding up to this much is cheaper than another round of small operations."""


@brief_repr
@dataclass(frozen=True)
class Bucket:
    """Texts that attend together: `texts` of them, each padded to `length` tokens."""

    texts: int
    length: int
    tokens: int
    places_T: Tensor | None
    """Where each token stands in the padded (texts × length) rows; None where nothing is padded."""
    mask_N11L: Tensor | None
    """0 on tokens, −inf on padding."""


@brief_repr
@dataclass(frozen=True)
class PackedTexts:
    """Tokens of N texts end to end, longest text first."""

    ids_T: Tensor
    positions_T: Tensor
    """Each token's place in its text, from 0."""
    lengths_N: Tensor
    order_N: Tensor
    """`vectors_ND[order_N]` brings pooled vectors back into the caller's order."""
    buckets: tuple[Bucket, ...]
    types_T: Tensor | None = None
    """Each token's segment, where the texts are pairs; None is segment 0 everywhere."""

    @property
    def starts_N(self) -> Tensor:
        """Where each text's first token stands."""
        return self.lengths_N.cumsum(0) - self.lengths_N

    def to(self, device: torch.device) -> PackedTexts:
        """Return the same plan on another device."""
        if self.ids_T.device == device:
            return self
        buckets = tuple(Bucket(b.texts, b.length, b.tokens, _move(b.places_T, device), _move(b.mask_N11L, device)) for b in self.buckets)
        ids_T, positions_T = self.ids_T.to(device), self.positions_T.to(device)
        types_T = _move(self.types_T, device)
        return PackedTexts(ids_T, positions_T, self.lengths_N.to(device), self.order_N.to(device), buckets, types_T)


def pack(texts: Sequence[Sequence[int] | NDArray[np.integer]], types: Sequence[Sequence[int]] | None = None) -> PackedTexts:
    """Return the plan for these texts; each has one token or more. `types` are the segments of pairs, one for each token.

    >>> pack([[5, 6], [7, 8, 9]]).ids_T.tolist()
    [7, 8, 9, 5, 6]
    """
    lengths_N = np.fromiter((len(ids) for ids in texts), np.int64, len(texts))
    if not len(texts) or lengths_N.min() < 1:
        raise ValueError("every text needs one token or more")
    by_length_N = np.argsort(-lengths_N, kind="stable")
    sorted_N = lengths_N[by_length_N]
    order_N = np.empty(len(texts), np.int64)
    order_N[by_length_N] = np.arange(len(texts))
    ids_T = np.concatenate([np.asarray(texts[index], np.int64) for index in by_length_N])
    positions_T = np.arange(len(ids_T)) - np.repeat(sorted_N.cumsum() - sorted_N, sorted_N)
    buckets = tuple(_make_bucket(sorted_N[first:last]) for first, last in _cut_buckets(sorted_N.tolist()))
    types_T = None if types is None else torch.from_numpy(np.concatenate([np.asarray(types[index], np.int64) for index in by_length_N]))
    return PackedTexts(
        torch.from_numpy(ids_T), torch.from_numpy(positions_T), torch.from_numpy(sorted_N), torch.from_numpy(order_N), buckets, types_T
    )


def _cut_buckets(descending: list[int]) -> list[tuple[int, int]]:
    """Cut texts, longest first, where the padding of a bucket would cost more than a bucket."""
    cuts, first, waste = [], 0, 0
    for index, length in enumerate(descending):
        waste += descending[first] ** 2 - length**2
        if waste > BUCKET_COST:
            cuts.append((first, index))
            first, waste = index, 0
    cuts.append((first, len(descending)))
    return [(start, stop) for start, stop in cuts if stop > start]


def _make_bucket(lengths_N: NDArray[np.int64]) -> Bucket:
    count, length, tokens = len(lengths_N), int(lengths_N[0]), int(lengths_N.sum())
    if tokens == count * length:
        return Bucket(count, length, tokens, None, None)
    real_NL = np.arange(length)[None, :] < lengths_N[:, None]
    mask_NL = np.where(real_NL, np.float32(0), np.float32(-np.inf))
    places_T = np.flatnonzero(real_NL)
    return Bucket(count, length, tokens, torch.from_numpy(places_T), torch.from_numpy(mask_NL)[:, None, None, :])


def _move(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else tensor.to(device)


_LIKE_BERT = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
_OFFSET_BY_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
_PLACES = {
    "bert": "attention.self.query attention.self.key attention.self.value attention.output.dense attention.output.dropout "
    "attention.output.LayerNorm intermediate.dense intermediate.intermediate_act_fn output.dense output.dropout output.LayerNorm",
    "mpnet": "attention.attn.q attention.attn.k attention.attn.v attention.attn.o attention.dropout "
    "attention.LayerNorm intermediate.dense intermediate.intermediate_act_fn output.dense output.dropout output.LayerNorm",
    "distilbert": "attention.q_lin attention.k_lin attention.v_lin attention.out_lin - "
    "sa_layer_norm ffn.lin1 ffn.activation ffn.lin2 ffn.dropout output_layer_norm",
}
"""Where a layer keeps the modules of `PartsLayer`, in the order of its fields; "-" is none. Families that are not here are like BERT."""


@brief_repr
@dataclass(frozen=True)
class PartsLayer:
    """The modules of one transformer layer."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear
    out_dropout: nn.Module | None
    attention_norm: nn.Module
    up: nn.Linear
    activation: Callable[[Tensor], Tensor]
    down: nn.Linear
    down_dropout: nn.Module
    final_norm: nn.Module
    heads: int
    attention_dropout: float

    @property
    def training(self) -> bool:
        """Whether the layer is in training mode, where attention drops out."""
        return self.final_norm.training


@brief_repr
@dataclass(frozen=True)
class Parts:
    """The modules of an encoder that the packed pass calls."""

    words: nn.Module
    positions: nn.Embedding
    types: nn.Embedding | None
    embedding_norm: nn.Module
    embedding_dropout: nn.Module
    project: nn.Module | None
    first_position: int
    layers: tuple[PartsLayer, ...]
    relative: nn.Module | None = None
    """MPNet's encoder, which knows its buckets."""


def find_parts(model: Any) -> Parts | None:
    """Return the parts of a model of a known family; None where the packed pass would not be the same model."""
    config = model.config
    family = config.model_type
    if family not in (*_LIKE_BERT, "distilbert", "mpnet") or getattr(config, "is_decoder", False):
        return None
    if getattr(config, "position_embedding_type", "absolute") not in (None, "absolute"):
        return None
    embeddings = model.embeddings
    layers = model.transformer.layer if family == "distilbert" else model.encoder.layer
    return Parts(
        words=embeddings.word_embeddings,
        positions=embeddings.position_embeddings,
        types=getattr(embeddings, "token_type_embeddings", None),
        embedding_norm=embeddings.LayerNorm,
        embedding_dropout=embeddings.dropout,
        project=getattr(model, "embeddings_project", None),
        first_position=embeddings.padding_idx + 1 if family in _OFFSET_BY_PADDING else 0,
        layers=tuple(_find_layer(layer, config, family) for layer in layers),
        relative=model.encoder if family == "mpnet" else None,
    )


def make_position_bias(parts: Parts, length: int) -> Tensor | None:
    """Return MPNet's bias for texts of this many tokens, shape (1, H, L, L); None for the others."""
    if parts.relative is None:
        return None
    encoder: Any = parts.relative
    places_L = torch.arange(length, device=encoder.relative_attention_bias.weight.device)
    buckets_LL = encoder.relative_position_bucket(places_L[None, :] - places_L[:, None], num_buckets=32)
    bias: Tensor = encoder.relative_attention_bias(buckets_LL).permute(2, 0, 1).unsqueeze(0)
    return bias


def _find_layer(layer: Any, config: Any, family: str) -> PartsLayer:
    modules: list[Any] = [None if place == "-" else attrgetter(place)(layer) for place in _PLACES.get(family, _PLACES["bert"]).split()]
    heads, dropout = ("n_heads", "attention_dropout") if family == "distilbert" else ("num_attention_heads", "attention_probs_dropout_prob")
    return PartsLayer(*[*modules, getattr(config, heads), getattr(config, dropout)])
