"""Self-attention over one bucket of packed texts, forward and backward written out.

In: queries, keys and values side by side as the linear layer leaves them, (T, 3D), and the bucket's plan. Out: attended rows (T, D).
The usual function spends more time on copies, masks and safe-guards than on the products when texts are short; here each of those is done
once, in place. Equal to scaled_dot_product_attention to rounding. A mask never hides a whole row, so softmax needs no guard.

Shapes: T tokens of the bucket, N texts, H heads, L tokens padded, d width of a head, D = H × d.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from munjang.train.packing import Bucket


def attend(qkv_TX: Tensor, bucket: Bucket, *, heads: int, dropout: float, bias_1HLL: Tensor | None) -> Tensor:
    """Return the attended rows of one bucket; `bias_1HLL` is added to the scores and gets a gradient."""
    made: Tensor = _Attention.apply(qkv_TX, bias_1HLL, bucket, heads, dropout)  # type: ignore[no-untyped-call]
    return made


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv_TX: Tensor, bias_1HLL: Tensor | None, bucket: Bucket, heads: int, dropout: float) -> Tensor:
        query_BLd, key_BLd, value_BLd = _by_head(qkv_TX, bucket, heads, 3)
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
        return _by_token(torch.bmm(used_BLL, value_BLd).unsqueeze(0), bucket, heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None, None]:
        query_BLd, key_BLd, value_BLd, probabilities_BLL, kept_BLL = ctx.saved_tensors
        bucket, heads = ctx.bucket, ctx.heads
        (out_BLd,) = _by_head(gradients[0], bucket, heads, 1)
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
        return _by_token(made_3BLd, bucket, heads), bias, None, None, None


def _by_head(rows_TX: Tensor, bucket: Bucket, heads: int, kinds: int) -> Tensor:
    """Return rows (T, kinds × D), padded, as (kinds, N × H, L, d)."""
    if bucket.places_T is not None:
        height = bucket.texts * bucket.length
        rows_TX = rows_TX.new_zeros(height, rows_TX.shape[1]).index_copy_(0, bucket.places_T, rows_TX)
    shaped = rows_TX.view(bucket.texts, bucket.length, kinds, heads, -1).permute(2, 0, 3, 1, 4)
    return shaped.reshape(kinds, bucket.texts * heads, bucket.length, -1)


def _by_token(parts_KBLd: Tensor, bucket: Bucket, heads: int) -> Tensor:
    """Return (kinds, N × H, L, d) as rows (T, kinds × D) without padding: `_by_head` backwards."""
    kinds = len(parts_KBLd)
    shaped = parts_KBLd.view(kinds, bucket.texts, heads, bucket.length, -1).permute(1, 3, 0, 2, 4)
    rows_RX = shaped.reshape(bucket.texts * bucket.length, -1)
    return rows_RX if bucket.places_T is None else rows_RX.index_select(0, bucket.places_T)
