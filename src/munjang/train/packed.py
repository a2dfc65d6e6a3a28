"""The fast forward pass: all texts of a batch as one (T, D) tensor without padding, through the backbone's own parameters, then pooling.

In: a Hugging Face encoder of a known family and `PackedTexts`. Out: one hidden row per real token, or one vector per text. Linear layers,
norms and activations see every token of the batch at once; attention runs bucket by bucket, forward and backward written out: the usual
function spends more time on copies, masks and safeguards than on the products when texts are short. Dropout rates are the backbone's.
Equal to the padded forward pass of transformers (dropout off) to 1e-6, and to sentence-transformers' Pooling. Families that `Parts` does
not know are left to the padded pass in `encoder.py`. Where nothing but the first token is read, as in a cross-encoder, the last layer is
computed for it alone.

Shapes: T tokens, N texts, H heads, L tokens of a bucket padded, d width of a head, D = H × d, X = 3 × D.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.engine.modules import POOLINGS
from munjang.train.packing import Bucket, PackedTexts, Parts, PartsLayer, make_position_bias
from munjang.types import Pooling

ROWS = 64
"""Tokens of a batch are filled up to a multiple of this many rows: for each new height of a product oneDNN compiles its code again."""


def attend_first(
    layer: PartsLayer, first_ND: Tensor, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: Sequence[Tensor | None]
) -> Tensor:
    """Return what each text's first token gathers from the text."""
    query_ND = layer.query(first_ND)
    weight, offset = torch.cat([layer.key.weight, layer.value.weight]), torch.cat([layer.key.bias, layer.value.bias])
    pairs_TX = F.linear(hidden_TD, weight, offset)
    queries = torch.split(query_ND, [bucket.texts for bucket in buckets])
    rows = _split_buckets(pairs_TX, buckets)
    attended = [
        _attend_first_token(layer, query, part, bucket, bias)
        for query, part, bucket, bias in zip(queries, rows, buckets, biases, strict=True)
    ]
    return torch.cat(attended) if len(attended) > 1 else attended[0]


def _attend_first_token(layer: PartsLayer, query_ND: Tensor, pairs_TX: Tensor, bucket: Bucket, bias_1HLL: Tensor | None) -> Tensor:
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


def attend(qkv_TX: Tensor, bucket: Bucket, *, heads: int, dropout: float, bias_1HLL: Tensor | None) -> Tensor:
    """Return the attended rows of one bucket; `bias_1HLL` is added to the scores and gets a gradient."""
    made: Tensor = _Attention.apply(qkv_TX, bias_1HLL, bucket, heads, dropout)  # type: ignore[no-untyped-call]
    return made


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv_TX: Tensor, bias_1HLL: Tensor | None, bucket: Bucket, heads: int, dropout: float) -> Tensor:
        query_BLd, key_BLd, value_BLd = _split_heads(qkv_TX, bucket, heads, 3)
        scale = query_BLd.shape[-1] ** -0.5
        scores_BLL = torch.bmm(query_BLd, key_BLd.transpose(1, 2)).mul_(scale)
        shaped_NHLL = scores_BLL.view(bucket.texts, heads, bucket.length, bucket.length)
        if bias_1HLL is not None:
            shaped_NHLL.add_(bias_1HLL)
        if bucket.mask_N11L is not None:
            shaped_NHLL.add_(bucket.mask_N11L)
        probabilities_BLL = torch.softmax(scores_BLL, dim=-1)
        kept_BLL = None
        used_BLL = probabilities_BLL
        if dropout > 0:
            kept_BLL = scores_BLL.bernoulli_(1 - dropout).mul_(1 / (1 - dropout))
            used_BLL = probabilities_BLL * kept_BLL
        ctx.save_for_backward(query_BLd, key_BLd, value_BLd, probabilities_BLL, kept_BLL)
        ctx.bucket, ctx.heads, ctx.scale, ctx.has_bias = bucket, heads, scale, bias_1HLL is not None
        return _join_heads(torch.bmm(used_BLL, value_BLd).unsqueeze(0), bucket, heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None, None]:
        query_BLd, key_BLd, value_BLd, probabilities_BLL, kept_BLL = ctx.saved_tensors
        bucket, heads = ctx.bucket, ctx.heads
        (out_BLd,) = _split_heads(gradients[0], bucket, heads, 1)
        made_3BLd = torch.empty((3, *query_BLd.shape), dtype=query_BLd.dtype, device=query_BLd.device)
        used_BLL = probabilities_BLL if kept_BLL is None else probabilities_BLL * kept_BLL
        torch.bmm(used_BLL.transpose(1, 2), out_BLd, out=made_3BLd[2])
        weights_BLL = torch.bmm(out_BLd, value_BLd.transpose(1, 2))
        if kept_BLL is not None:
            weights_BLL.mul_(kept_BLL)
        scores_BLL = torch._softmax_backward_data(weights_BLL, probabilities_BLL, -1, probabilities_BLL.dtype)
        bias = None
        if ctx.has_bias:
            bias = scores_BLL.view(bucket.texts, heads, bucket.length, bucket.length).sum(dim=0, keepdim=True)
        scores_BLL.mul_(ctx.scale)
        torch.bmm(scores_BLL, key_BLd, out=made_3BLd[0])
        torch.bmm(scores_BLL.transpose(1, 2), query_BLd, out=made_3BLd[1])
        return _join_heads(made_3BLd, bucket, heads), bias, None, None, None


def _split_heads(rows_TX: Tensor, bucket: Bucket, heads: int, kinds: int) -> Tensor:
    """Return rows (T, kinds × D), padded, as (kinds, N × H, L, d)."""
    if bucket.places_T is not None:
        height = bucket.texts * bucket.length
        rows_TX = rows_TX.new_zeros(height, rows_TX.shape[1]).index_copy_(0, bucket.places_T, rows_TX)
    shaped = rows_TX.view(bucket.texts, bucket.length, kinds, heads, -1).permute(2, 0, 3, 1, 4)
    return shaped.reshape(kinds, bucket.texts * heads, bucket.length, -1)


def _join_heads(parts_KBLd: Tensor, bucket: Bucket, heads: int) -> Tensor:
    """Return (kinds, N × H, L, d) as rows (T, kinds × D) without padding: `_split_heads` backwards."""
    kinds = len(parts_KBLd)
    shaped = parts_KBLd.view(kinds, bucket.texts, heads, bucket.length, -1).permute(1, 3, 0, 2, 4)
    rows_RX = shaped.reshape(bucket.texts * bucket.length, -1)
    return rows_RX if bucket.places_T is None else rows_RX.index_select(0, bucket.places_T)


def run_packed(parts: Parts, packed: PackedTexts) -> Tensor:
    """Return the last layer's hidden state of each token, shape (T, D)."""
    hidden_TD = _embed(parts, packed)
    biases = [make_position_bias(parts, bucket.length) for bucket in packed.buckets]
    for layer in parts.layers:
        hidden_TD = _run_layer(layer, hidden_TD, packed.buckets, biases)
    return hidden_TD[: len(packed.ids_T)]


def run_packed_first(parts: Parts, packed: PackedTexts) -> Tensor:
    """Return the last layer's hidden state of each text's first token, shape (N, D), in the packed order of texts."""
    hidden_TD = _embed(parts, packed)
    biases = [make_position_bias(parts, bucket.length) for bucket in packed.buckets]
    for layer in parts.layers[:-1]:
        hidden_TD = _run_layer(layer, hidden_TD, packed.buckets, biases)
    last = parts.layers[-1]
    first_ND = hidden_TD.index_select(0, packed.starts_N)
    attended_ND = attend_first(last, first_ND, hidden_TD, packed.buckets, biases)
    return _finish_layer(last, attended_ND, first_ND)


def _embed(parts: Parts, packed: PackedTexts) -> Tensor:
    vectors_TE = parts.words(packed.ids_T)
    if parts.types is not None:
        vectors_TE = vectors_TE + (parts.types.weight[0] if packed.types_T is None else parts.types(packed.types_T))
    vectors_TE = vectors_TE + parts.positions(packed.positions_T + parts.first_position)
    vectors_TE = F.pad(parts.embedding_dropout(parts.embedding_norm(vectors_TE)), (0, 0, 0, -len(vectors_TE) % ROWS))
    return vectors_TE if parts.project is None else _as_tensor(parts.project(vectors_TE))


def _run_layer(layer: PartsLayer, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: list[Tensor | None]) -> Tensor:
    return _finish_layer(layer, _attend_buckets(layer, hidden_TD, buckets, biases), hidden_TD)


def _finish_layer(layer: PartsLayer, attended_TD: Tensor, hidden_TD: Tensor) -> Tensor:
    hidden_TD = layer.attention_norm(_drop_out(layer.out_dropout, layer.out(attended_TD)) + hidden_TD)
    inner_TD = _drop_out(layer.down_dropout, layer.down(layer.activation(layer.up(hidden_TD))))
    return _as_tensor(layer.final_norm(inner_TD + hidden_TD))


def _attend_buckets(layer: PartsLayer, hidden_TD: Tensor, buckets: tuple[Bucket, ...], biases: list[Tensor | None]) -> Tensor:
    # one matrix product for queries, keys and values: copying the weights costs less than two more passes over the tokens
    weight = torch.cat([layer.query.weight, layer.key.weight, layer.value.weight])
    offset = torch.cat([layer.query.bias, layer.key.bias, layer.value.bias])
    qkv_TX = F.linear(hidden_TD, weight, offset)
    dropout = layer.attention_dropout if layer.training else 0.0
    attended = [
        attend(part, bucket, heads=layer.heads, dropout=dropout, bias_1HLL=bias)
        for part, bucket, bias in zip(_split_buckets(qkv_TX, buckets), buckets, biases, strict=True)
    ]
    filled = len(qkv_TX) - sum(bucket.tokens for bucket in buckets)
    return torch.cat([*attended, attended[0].new_zeros(filled, attended[0].shape[1])])


def _split_buckets(rows_TX: Tensor, buckets: tuple[Bucket, ...]) -> tuple[Tensor, ...]:
    """Return the rows of each bucket; what fills the last product up belongs to none."""
    sizes = [bucket.tokens for bucket in buckets]
    return torch.split(rows_TX[: sum(sizes)], sizes)


def _drop_out(dropout: nn.Module | None, values: Tensor) -> Tensor:
    return values if dropout is None else _as_tensor(dropout(values))


def _as_tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def pool(hidden_TD: Tensor, packed: PackedTexts, modes: Sequence[Pooling]) -> Tensor:
    """Return vectors (N, D × modes) in the caller's order of texts."""
    made = [
        _pool_max(hidden_TD, packed) if mode == "max" else _pool_weighted(hidden_TD, packed, mode) for mode in POOLINGS if mode in modes
    ]
    return (torch.cat(made, dim=1) if len(made) > 1 else made[0])[packed.order_N]


def _pool_weighted(hidden_TD: Tensor, packed: PackedTexts, mode: Pooling) -> Tensor:
    lengths_N, starts_N = packed.lengths_N, packed.starts_N
    if mode == "cls":
        return hidden_TD.index_select(0, starts_N)
    if mode == "lasttoken":
        return hidden_TD.index_select(0, starts_N + lengths_N - 1)
    lengths_T = lengths_N.repeat_interleave(lengths_N).to(hidden_TD.dtype)
    if mode == "mean":
        weights_T = 1 / lengths_T
    elif mode == "mean_sqrt_len":
        weights_T = lengths_T.rsqrt()
    else:
        # 1, 2, … L over their sum
        weights_T = (packed.positions_T + 1).to(hidden_TD.dtype) * 2 / (lengths_T * (lengths_T + 1))
    text_T = torch.arange(len(lengths_N), device=hidden_TD.device).repeat_interleave(lengths_N)
    table_NT = hidden_TD.new_zeros(len(lengths_N), len(hidden_TD))
    table_NT[text_T, torch.arange(len(hidden_TD), device=hidden_TD.device)] = weights_T
    return table_NT @ hidden_TD


def _pool_max(hidden_TD: Tensor, packed: PackedTexts) -> Tensor:
    longest = int(packed.lengths_N[0])
    text_T = torch.arange(len(packed.lengths_N), device=hidden_TD.device).repeat_interleave(packed.lengths_N)
    places_T = text_T * longest + packed.positions_T
    padded = hidden_TD.new_full((len(packed.lengths_N) * longest, hidden_TD.shape[1]), -torch.inf).index_copy(0, places_T, hidden_TD)
    return padded.view(len(packed.lengths_N), longest, -1).max(dim=1).values
