"""The families of encoders that the engine runs: by model_type, where each keeps its tensors and its sizes.

Nothing comes in and nothing is computed here: a family is a table of names, which `backbone` reads by and `models.compress` cuts by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class FamilyNames:
    """What one family calls its tensors and the keys of its config.json."""

    prefixes: tuple[str, ...]
    """What may stand before every name: a model saved with a head has one, a bare encoder has none."""
    layer: str
    """{} is the layer's number; the names below follow it."""
    query: str
    key: str
    value: str
    attention_out: str
    attention_norm: str
    up: str
    down: str
    out_norm: str
    offset_by_padding: bool = False
    """Whether positions are counted from the padding's id on, and not from 0."""
    has_types: bool = True
    layers_key: str = "num_hidden_layers"
    heads_key: str = "num_attention_heads"
    activation_key: str = "hidden_act"
    epsilon_key: str = "layer_norm_eps"


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

FAMILIES: dict[str, FamilyNames] = {
    "bert": _BERT,
    "electra": replace(_BERT, prefixes=("electra.", "")),
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
        has_types=False,
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
        has_types=False,
    ),
}
