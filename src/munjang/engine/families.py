"""What each family of encoders calls its tensors and the keys of its config.json: one table entry per family.

`backbone.py` reads every family through these names; a family that needs no mathematics of its own needs no code. A family whose models
are saved under several sets of names has one entry per set in `OTHER_NAMES`; the first set whose tensors are there is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

NormKind = Literal["layer", "rms", "rms+1"]
"""Layer normalisation; root mean square; root mean square with the weight counted from 1 on."""


@dataclass(frozen=True)
class FamilyNames:
    """What one family calls its tensors and the keys of its config.json; an empty name is a part that the family does not have."""

    prefixes: tuple[str, ...]
    """What may stand before every name: a model saved with a head has one, a bare encoder has none."""
    layer: str
    """{} is the layer's number; the names below follow it."""
    attention_out: str
    down: str
    query: str = ""
    key: str = ""
    value: str = ""
    qkv: str = ""
    """Query, key and value in one matrix, in this order, instead of the three."""
    up: str = ""
    gate: str = ""
    """A gated feed-forward part computes activation(gate(x)) * up(x), any other activation(up(x))."""
    gate_up: str = ""
    up_gate: str = ""
    """Both in one matrix, in the order of the name."""
    attention_norm: str = ""
    out_norm: str = ""
    """Norms after the residual sums: the family is post-norm."""
    before_attention: str = ""
    after_attention: str = ""
    before_mlp: str = ""
    after_mlp: str = ""
    """Norms before the two parts of a layer, and on what these give before it is added: the family is pre-norm if `before_mlp` is named."""
    query_norm: str = ""
    key_norm: str = ""
    final_norm: str = ""
    words: str = "embeddings.word_embeddings.weight"
    positions: str = "embeddings.position_embeddings.weight"
    types: str = "embeddings.token_type_embeddings.weight"
    embedding_norm: str = "embeddings.LayerNorm"
    projection: str = ""
    """A linear layer from the embeddings' width to the layers'."""
    norm_kind: NormKind = "layer"
    attention_bias: bool | str = True
    up_bias: bool | str = True
    down_bias: bool | str = True
    norm_bias: bool | str = True
    """Whether these have a bias; a text is the key of config.json that says so, and means no where the key is missing."""
    offset_by_padding: bool = False
    """Whether positions are counted from the padding's id on, and not from 0."""
    layers_key: str = "num_hidden_layers"
    heads_key: str = "num_attention_heads"
    activation_key: str = "hidden_act"
    epsilon_key: str = "layer_norm_eps"
    positions_key: str = "max_position_embeddings"
    epsilon: float = 1e-12
    theta: float = 0.0
    """Base of the rotary positions where config.json does not say; 0 for a family without."""
    layers_alike: bool = True
    """Whether any layer may be left out: each has its own tensors, of the same kind as all others."""


_BERT = FamilyNames(
    prefixes=("bert.", ""),
    layer="encoder.layer.{}.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_out="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
    out_norm="output.LayerNorm",
)
_ROBERTA = replace(_BERT, prefixes=("roberta.", ""), offset_by_padding=True)

_MODERNBERT = FamilyNames(
    prefixes=("model.", ""),
    layer="layers.{}.",
    qkv="attn.Wqkv",
    attention_out="attn.Wo",
    gate_up="mlp.Wi",
    down="mlp.Wo",
    before_attention="attn_norm",
    before_mlp="mlp_norm",
    final_norm="final_norm",
    words="embeddings.tok_embeddings.weight",
    positions="",
    types="",
    embedding_norm="embeddings.norm",
    attention_bias="attention_bias",
    up_bias="mlp_bias",
    down_bias="mlp_bias",
    norm_bias="norm_bias",
    activation_key="hidden_activation",
    epsilon_key="norm_eps",
    epsilon=1e-5,
    theta=160_000.0,
    layers_alike=False,
)

FAMILIES: dict[str, FamilyNames] = {
    "bert": _BERT,
    "electra": replace(_BERT, prefixes=("electra.", ""), projection="embeddings_project"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": FamilyNames(
        prefixes=("distilbert.", ""),
        layer="transformer.layer.{}.",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_out="attention.out_lin",
        attention_norm="sa_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        out_norm="output_layer_norm",
        types="",
        layers_key="n_layers",
        heads_key="n_heads",
        activation_key="activation",
    ),
    "mpnet": replace(
        _BERT,
        prefixes=("mpnet.", ""),
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        attention_out="attention.attn.o",
        attention_norm="attention.LayerNorm",
        offset_by_padding=True,
        types="",
    ),
    "modernbert": _MODERNBERT,
}

OTHER_NAMES: dict[str, tuple[FamilyNames, ...]] = {}
"""Further sets of names of a family, tried after the one in `FAMILIES`."""
