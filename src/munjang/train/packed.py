"""The fast forward pass: all texts of a batch as one (T, D) tensor without padding, through the backbone's own parameters.

In: a Hugging Face encoder of a known family and `PackedTexts`. Out: one hidden row per real token. Linear layers, norms and activations see
every token of the batch at once; attention runs bucket by bucket. Dropout rates are the backbone's. Equal to the padded forward pass of
transformers (dropout off) to 1e-6. Families that `Parts` does not know are left to the padded pass in `encoder.py`. Where nothing but the
first token is read, as in a cross-encoder, the last layer is computed for it alone (`packed_first.py`).

Shapes: T tokens, N texts, D width, X = 3 × D.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.train.attention import attend
from munjang.train.packed_first import attend_first
from munjang.train.packed_parts import Parts, PartsLayer, position_bias
from munjang.train.packing import Bucket, PackedTexts


def packed_hidden(parts: Parts, packed: PackedTexts) -> Tensor:
    """Return the last layer's hidden state of each token, shape (T, D)."""
    hidden_TD = _embedded(parts, packed)
    biases = [position_bias(parts, bucket.length) for bucket in packed.buckets]
    for layer in parts.layers:
        hidden_TD = _layer(layer, hidden_TD, packed.buckets, biases)
    return hidden_TD


def packed_first(parts: Parts, packed: PackedTexts) -> Tensor:
    """Return the last layer's hidden state of each text's first token, shape (N, D), in the packed order of texts."""
    hidden_TD = _embedded(parts, packed)
    biases = [position_bias(parts, bucket.length) for bucket in packed.buckets]
    for layer in parts.layers[:-1]:
        hidden_TD = _layer(layer, hidden_TD, packed.buckets, biases)
    last = parts.layers[-1]
    first_ND = hidden_TD.index_select(0, packed.starts_N)
    attended_ND = attend_first(last, first_ND, hidden_TD, packed.buckets, biases)
    return _after_attention(last, attended_ND, first_ND)


def _embedded(parts: Parts, packed: PackedTexts) -> Tensor:
    vectors_TE = parts.words(packed.ids_T)
    if parts.types is not None:
        vectors_TE = vectors_TE + (parts.types.weight[0] if packed.types_T is None else parts.types(packed.types_T))
    vectors_TE = vectors_TE + parts.positions(packed.positions_T + parts.first_position)
    vectors_TE = parts.embedding_dropout(parts.embedding_norm(vectors_TE))
    return vectors_TE if parts.project is None else _tensor(parts.project(vectors_TE))


def _layer(layer: PartsLayer, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: list[Tensor | None]) -> Tensor:
    return _after_attention(layer, _attention(layer, hidden_TD, buckets, biases), hidden_TD)


def _after_attention(layer: PartsLayer, attended_TD: Tensor, hidden_TD: Tensor) -> Tensor:
    hidden_TD = layer.attention_norm(_dropped(layer.out_dropout, layer.out(attended_TD)) + hidden_TD)
    inner_TD = _dropped(layer.down_dropout, layer.down(layer.activation(layer.up(hidden_TD))))
    return _tensor(layer.final_norm(inner_TD + hidden_TD))


def _attention(layer: PartsLayer, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: list[Tensor | None]) -> Tensor:
    # one matrix product for queries, keys and values: copying the weights costs less than two more passes over the tokens
    weight = torch.cat([layer.query.weight, layer.key.weight, layer.value.weight])
    offset = torch.cat([layer.query.bias, layer.key.bias, layer.value.bias])
    qkv_TX = F.linear(hidden_TD, weight, offset)
    dropout = layer.attention_dropout if layer.training else 0.0
    parts = torch.split(qkv_TX, [bucket.tokens for bucket in buckets])
    attended = [
        attend(part, bucket, heads=layer.heads, dropout=dropout, bias_1HLL=bias)
        for part, bucket, bias in zip(parts, buckets, biases, strict=True)
    ]
    return torch.cat(attended) if len(attended) > 1 else attended[0]


def _dropped(dropout: nn.Module | None, values: Tensor) -> Tensor:
    return values if dropout is None else _tensor(dropout(values))


def _tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value
