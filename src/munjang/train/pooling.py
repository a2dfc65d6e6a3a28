"""Hidden rows of packed tokens → one vector per text.

Every pooling but max is a weighted sum of a text's tokens, so all of them are one matrix product with an (N, T) table of weights. Equal to
sentence-transformers' Pooling; several modes are concatenated in its order.

Shapes: T tokens of all texts, N texts, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.engine.modules import POOLINGS, Pooling
from munjang.train.packing import PackedTexts


def pool(hidden_TD: Tensor, packed: PackedTexts, modes: Sequence[Pooling]) -> Tensor:
    """Return vectors (N, D × modes) in the caller's order of texts."""
    made = [_max(hidden_TD, packed) if mode == "max" else _weighted(hidden_TD, packed, mode) for mode in POOLINGS if mode in modes]
    return (torch.cat(made, dim=1) if len(made) > 1 else made[0])[packed.order_N]


def _weighted(hidden_TD: Tensor, packed: PackedTexts, mode: Pooling) -> Tensor:
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


def _max(hidden_TD: Tensor, packed: PackedTexts) -> Tensor:
    longest = int(packed.lengths_N[0])
    text_T = torch.arange(len(packed.lengths_N), device=hidden_TD.device).repeat_interleave(packed.lengths_N)
    places_T = text_T * longest + packed.positions_T
    padded = hidden_TD.new_full((len(packed.lengths_N) * longest, hidden_TD.shape[1]), -torch.inf).index_copy(0, places_T, hidden_TD)
    return padded.view(len(packed.lengths_N), longest, -1).max(dim=1).values
