"""Where each family of encoder keeps its layers: one table, so that the packed pass is written once.

In: a Hugging Face model. Out: `Parts`, references to the model's own modules (nothing is copied), or None for a family that is not here.
BERT, RoBERTa, XLM-R, CamemBERT and ELECTRA share one shape; DistilBERT and MPNet have their own names, MPNet a relative position bias too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from munjang.wording import brief_repr

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
