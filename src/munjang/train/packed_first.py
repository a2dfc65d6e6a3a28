"""Attention of each text's first token alone: what a cross-encoder needs of its last layer.

In: the first tokens' hidden rows, all tokens' hidden rows, and the buckets they lie in. Out: one attended row per text, in packed order.
Keys and values are made for every token, queries for one in each text, so most of the layer's work falls away.

Shapes: T tokens, N texts, H heads, L tokens of a bucket padded, d width of a head, D = H × d.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.train.packed_parts import PartsLayer
from munjang.train.packing import Bucket


def attend_first(
    layer: PartsLayer, first_ND: Tensor, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: Sequence[Tensor | None]
) -> Tensor:
    """Return what each text's first token gathers from the text."""
    query_ND = layer.query(first_ND)
    weight, offset = torch.cat([layer.key.weight, layer.value.weight]), torch.cat([layer.key.bias, layer.value.bias])
    pairs_TX = F.linear(hidden_TD, weight, offset)
    queries = torch.split(query_ND, [bucket.texts for bucket in buckets])
    rows = torch.split(pairs_TX, [bucket.tokens for bucket in buckets])
    attended = [
        _attended(layer, query, part, bucket, bias) for query, part, bucket, bias in zip(queries, rows, buckets, biases, strict=True)
    ]
    return torch.cat(attended) if len(attended) > 1 else attended[0]


def _attended(layer: PartsLayer, query_ND: Tensor, pairs_TX: Tensor, bucket: Bucket, bias_1HLL: Tensor | None) -> Tensor:
    if bucket.places_T is not None:
        height = bucket.texts * bucket.length
        pairs_TX = pairs_TX.new_zeros(height, pairs_TX.shape[1]).index_copy(0, bucket.places_T, pairs_TX)
    key_NHLd, value_NHLd = pairs_TX.view(bucket.texts, bucket.length, 2, layer.heads, -1).permute(2, 0, 3, 1, 4)
    query_NH1d = query_ND.view(bucket.texts, layer.heads, 1, -1)
    scores_NH1L = query_NH1d @ key_NHLd.transpose(2, 3) * query_NH1d.shape[-1] ** -0.5
    if bias_1HLL is not None:
        scores_NH1L = scores_NH1L + bias_1HLL[:, :, :1]
    if bucket.mask_N11L is not None:
        scores_NH1L = scores_NH1L + bucket.mask_N11L
    weights_NH1L = F.dropout(scores_NH1L.softmax(dim=-1), layer.attention_dropout, layer.training)
    attended_ND: Tensor = (weights_NH1L @ value_NHLd).reshape(bucket.texts, -1)
    return attended_ND
