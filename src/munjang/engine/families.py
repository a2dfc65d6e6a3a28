"""What each family of encoders calls its tensors and the keys of its config.json: one table entry per family.

`backbone.py` reads every family through these names; a family that needs no mathematics of its own needs no code. A family whose models
are saved under several sets of names has one entry per set in `OTHER_NAMES`; the first set whose tensors are there is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

NormKind = Literal["layer", "rms", "rms+1"]
"""Layer normalisation; root mean square; root mean square with the weight counted from 1 on."""


@dataclass(frozen=True)
class FamilyNames:
    """What one family calls its tensors and the keys of its config.json; an empty name is a part that the family does not have."""

    prefixes: tuple[str, ...]
    """What may stand before every name: a model saved with a head has one, a bare encoder has none."""
    layer: str
    """{} is the layer's number; the names below follow it, behind `inner`."""
    attention_out: str
    down: str
    inner: str = ""
    """Where a numbered part holds several layers: the first one's name."""
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
    projection_bias: bool = True
    types_key: str = ""
    """The key of config.json that counts the segments, where there may be none; `type_count` are there without it."""
    type_count: int = 0
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

_ALBERT = FamilyNames(
    prefixes=("albert.", ""),
    layer="encoder.albert_layer_groups.{}.",
    inner="albert_layers.0.",
    query="attention.query",
    key="attention.key",
    value="attention.value",
    attention_out="attention.dense",
    attention_norm="attention.LayerNorm",
    up="ffn",
    down="ffn_output",
    out_norm="full_layer_layer_norm",
    projection="encoder.embedding_hidden_mapping_in",
    layers_alike=False,
)
_DEBERTA = replace(
    _BERT,
    prefixes=("deberta.", ""),
    query="attention.self.query_proj",
    key="attention.self.key_proj",
    value="attention.self.value_proj",
    projection="embeddings.embed_proj",
    projection_bias=False,
    types_key="type_vocab_size",
    epsilon=1e-7,
    layers_alike=False,
)

_LLAMA = FamilyNames(
    prefixes=("model.", ""),
    layer="layers.{}.",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    attention_out="self_attn.o_proj",
    up="mlp.up_proj",
    gate="mlp.gate_proj",
    down="mlp.down_proj",
    before_attention="input_layernorm",
    before_mlp="post_attention_layernorm",
    final_norm="norm",
    words="embed_tokens.weight",
    positions="",
    types="",
    embedding_norm="",
    norm_kind="rms",
    attention_bias="attention_bias",
    up_bias=False,
    down_bias=False,
    epsilon_key="rms_norm_eps",
    epsilon=1e-6,
    theta=10_000.0,
    layers_alike=False,
)
_GTE = FamilyNames(
    prefixes=("gte.", ""),
    layer="layers.{}.",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    attention_out="self_attn.o_proj",
    attention_norm="post_attention_layernorm",
    up="mlp.up_proj",
    gate="mlp.gate_proj",
    down="mlp.down_proj",
    out_norm="post_mlp_layernorm",
    positions="",
    types_key="type_vocab_size",
    type_count=1,
    up_bias=False,
    theta=160_000.0,
    layers_alike=False,
)
_NEW = replace(
    _GTE,
    prefixes=("new.", "gte.", ""),
    layer="encoder.layer.{}.",
    query="",
    key="",
    value="",
    qkv="attention.qkv_proj",
    attention_out="attention.o_proj",
    attention_norm="attn_ln",
    up="",
    gate="",
    up_gate="mlp.up_gate_proj",
    out_norm="mlp_ln",
    theta=10_000.0,
)
_NOMIC = replace(
    _GTE,
    prefixes=("nomic_bert.", "bert.", ""),
    attention_bias=False,
    down_bias=False,
    types_key="type_vocab_size",
    type_count=2,
    theta=1_000.0,
)
_NOMIC_FUSED = replace(
    _NOMIC,
    layer="encoder.layers.{}.",
    query="",
    key="",
    value="",
    qkv="attn.Wqkv",
    attention_out="attn.out_proj",
    attention_norm="norm1",
    up="mlp.fc11",
    gate="mlp.fc12",
    down="mlp.fc2",
    out_norm="norm2",
    embedding_norm="emb_ln",
)
_NOMIC_OWN = replace(
    _NOMIC_FUSED,
    attention_bias="qkv_proj_bias",
    up_bias="mlp_fc1_bias",
    down_bias="mlp_fc2_bias",
    layers_key="n_layer",
    heads_key="n_head",
    activation_key="activation_function",
    epsilon_key="layer_norm_epsilon",
    positions_key="n_positions",
)
_JINA = replace(
    _GTE,
    prefixes=("roberta.", ""),
    up="mlp.fc1",
    gate="",
    down="mlp.fc2",
    up_bias=True,
    epsilon=1e-5,
    theta=20_000.0,
)
_JINA_FUSED = replace(
    _JINA,
    layer="encoder.layers.{}.",
    query="",
    key="",
    value="",
    qkv="mixer.Wqkv",
    attention_out="mixer.out_proj",
    attention_norm="norm1",
    out_norm="norm2",
    embedding_norm="emb_ln",
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
    "albert": _ALBERT,
    "deberta-v2": _DEBERTA,
    "modernbert": _MODERNBERT,
    "qwen3": replace(_LLAMA, query_norm="self_attn.q_norm", key_norm="self_attn.k_norm"),
    "gemma3_text": replace(
        _LLAMA,
        query_norm="self_attn.q_norm",
        key_norm="self_attn.k_norm",
        after_attention="post_attention_layernorm",
        before_mlp="pre_feedforward_layernorm",
        after_mlp="post_feedforward_layernorm",
        norm_kind="rms+1",
        activation_key="hidden_activation",
    ),
    "gte": _GTE,
    "new": _NEW,
    "nomic_bert": _NOMIC,
    "eurobert": replace(_LLAMA, up_bias="mlp_bias", down_bias="mlp_bias", epsilon=1e-5),
    "jina_embeddings_v3": _JINA,
}


def find_family(config: dict[str, Any]) -> str:
    """Return the family that a config.json describes; Jina v3 calls itself an XLM-RoBERTa with rotary positions."""
    family = str(config.get("model_type"))
    return "jina_embeddings_v3" if is_first_jina(config) else family


def is_first_jina(config: dict[str, Any]) -> bool:
    """Say whether a config.json is one of Jina v3 as it was first published."""
    return config.get("model_type") == "xlm-roberta" and config.get("position_embedding_type") == "rotary"


OTHER_NAMES: dict[str, tuple[FamilyNames, ...]] = {
    "gte": (_NEW,),
    "nomic_bert": (_NOMIC_OWN, _NOMIC_FUSED),
    "jina_embeddings_v3": (_JINA_FUSED,),
}
"""Further sets of names of a family, tried after the one in `FAMILIES`."""
