"""The weights of an encoder, whatever its family calls them → one common shape.

Comes in: a transformer module of a folder. Goes out: a `Backbone`, its shapes checked. All six families (BERT, RoBERTa, XLM-RoBERTa,
ELECTRA, DistilBERT, MPNet) are post-layer-norm transformers that differ in names, in where positions start, and in a few extras (an
embedding projection, a relative position bias). A family is a table of names in `families`; `read_backbone` is the only code.

Shapes: V pieces, P positions, E embedding width, D hidden width, F feed-forward width. Linear weights are stored (in, out): y = x @ w + b.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from munjang.engine.modules import HIDDEN_ACTIVATIONS, Activation, TransformerModule
from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError, quote
from munjang.types import Floats


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


@dataclass(frozen=True)
class Linear:
    """y = x @ w + b."""

    w: Floats
    b: Floats


@dataclass(frozen=True)
class Norm:
    """Layer normalisation."""

    w: Floats
    b: Floats
    epsilon: float


@dataclass(frozen=True)
class EncoderLayer:
    """One transformer layer."""

    query: Linear
    key: Linear
    value: Linear
    attention_out: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    out_norm: Norm


@dataclass(frozen=True)
class Backbone:
    """An encoder's weights and the few facts that its graph needs."""

    family: str
    words_VE: Floats
    positions_PE: Floats
    types_E: Floats | None
    """One row per segment, or None where the family has no segments."""
    embedding_norm: Norm
    projection: Linear | None
    layers: tuple[EncoderLayer, ...]
    heads: int
    activation: Activation
    first_position: int
    relative_bias: Floats | None
    """MPNet: (buckets, heads)."""

    @property
    def dimension(self) -> int:
        """Width of a token vector."""
        return int(self.layers[-1].out_norm.w.shape[0])

    @property
    def max_tokens(self) -> int:
        """Positions that one text can have."""
        return int(self.positions_PE.shape[0]) - self.first_position


def read_backbone(module: TransformerModule, weights: Weights | None = None) -> Backbone:
    """Read the encoder that `module` describes."""
    weights = find_weights(module.folder) if weights is None else weights
    return _Reader(module, weights).read()


class _Reader:
    """Takes named tensors out of a folder and checks their shapes on the way."""

    def __init__(self, module: TransformerModule, weights: Weights) -> None:
        self.where, self.config_file = module.folder, module.folder / "config.json"
        self.config: dict[str, Any] = module.config
        self.weights = weights
        family = str(self.config.get("model_type"))
        if family not in FAMILIES:
            raise FolderError(
                f"{self.config_file}: model_type {quote(family)} does not run on the fast engine; it runs {', '.join(FAMILIES)}\n"
                "  the extra 'train' trains other families, and in Python encodes with them: munjang.train.load(FOLDER).encode(texts)"
            )
        self.family, self.names = family, FAMILIES[family]
        self.prefix = self._find_prefix()
        self.epsilon = self.small(self.names.epsilon_key, default=1e-12)

    def read(self) -> Backbone:
        names = self.names
        words = self.table("embeddings.word_embeddings.weight")
        positions = self.table("embeddings.position_embeddings.weight", words.shape[1])
        types = self.table("embeddings.token_type_embeddings.weight", words.shape[1]) if names.has_types else None
        projection = self.linear("embeddings_project") if self.prefix + "embeddings_project.weight" in self.weights else None
        width = projection.w.shape[1] if projection else words.shape[1]
        backbone = Backbone(
            family=self.family,
            words_VE=words,
            positions_PE=positions,
            types_E=types,
            embedding_norm=self.norm("embeddings.LayerNorm", words.shape[1]),
            projection=projection,
            layers=tuple(self.layer(number, width) for number in range(self.whole(names.layers_key))),
            heads=self.whole(names.heads_key),
            activation=self.activation(names.activation_key),
            first_position=self.whole("pad_token_id", default=1) + 1 if names.offset_by_padding else 0,
            relative_bias=self.table("encoder.relative_attention_bias.weight") if self.family == "mpnet" else None,
        )
        self.check(backbone, width)
        return backbone

    def check(self, backbone: Backbone, width: int) -> None:
        if not backbone.layers:
            raise FolderError(f"{self.config_file}: the encoder has no layers")
        if backbone.heads < 1 or width % backbone.heads:
            raise FolderError(f"{self.config_file}: {backbone.heads} heads do not divide a width of {width}")
        if backbone.relative_bias is not None and (backbone.relative_bias.shape[1] != backbone.heads or len(backbone.relative_bias) < 4):
            raise FolderError(
                f"{self.where}: relative_attention_bias has shape {backbone.relative_bias.shape}, expected one column per head"
            )
        kind = self.config.get("position_embedding_type", "absolute")
        if kind not in (None, "absolute"):
            raise FolderError(f"{self.config_file}: position_embedding_type {quote(str(kind))} does not run on the fast engine")
        if self.config.get("is_decoder") or self.config.get("add_cross_attention"):
            raise FolderError(f"{self.config_file}: a decoder, expected an encoder")
        if backbone.max_tokens < 1:
            raise FolderError(f"{self.where}: {backbone.positions_PE.shape[0]} positions leave no room for a text")

    def layer(self, number: int, width: int) -> EncoderLayer:
        names, at = self.names, self.names.layer.format(number)
        layer = EncoderLayer(
            query=self.linear(at + names.query),
            key=self.linear(at + names.key),
            value=self.linear(at + names.value),
            attention_out=self.linear(at + names.attention_out),
            attention_norm=self.norm(at + names.attention_norm, width),
            up=self.linear(at + names.up),
            down=self.linear(at + names.down),
            out_norm=self.norm(at + names.out_norm, width),
        )
        inner = layer.up.w.shape[1]
        expected = {"query": (width, width), "key": (width, width), "value": (width, width), "attention_out": (width, width)}
        expected |= {"up": (width, inner), "down": (inner, width)}
        for part, shape in expected.items():
            found = getattr(layer, part).w.shape
            if found != shape:
                raise FolderError(f"{self.where}: layer {number}'s {part} has shape {found}, expected {shape}")
        return layer

    def table(self, name: str, width: int | None = None) -> Floats:
        table = self.tensor(name)
        if table.ndim != 2 or 0 in table.shape or (width is not None and table.shape[1] != width):
            raise FolderError(f"{self.where}: {name} has shape {table.shape}, expected rows of {'one' if width is None else width} width")
        return table

    def linear(self, name: str) -> Linear:
        w, b = self.tensor(name + ".weight"), self.tensor(name + ".bias")
        if w.ndim != 2 or b.shape != (w.shape[0],):
            raise FolderError(f"{self.where}: {name} has shapes {w.shape} and {b.shape}, which do not fit each other")
        return Linear(w.T, b)

    def norm(self, name: str, width: int) -> Norm:
        w, b = self.tensor(name + ".weight"), self.tensor(name + ".bias")
        if w.shape != (width,) or b.shape != (width,):
            raise FolderError(f"{self.where}: {name} has shapes {w.shape} and {b.shape}, expected ({width},)")
        return Norm(w, b, self.epsilon)

    def tensor(self, name: str) -> Floats:
        try:
            return self.weights.floats(self.prefix + name)
        except KeyError:
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            if self.prefix + old in self.weights:
                return self.weights.floats(self.prefix + old)
            raise FolderError(
                f"{self.where}: the weights have no tensor {self.prefix + name!r}; this is not a {self.family} encoder"
            ) from None

    def whole(self, key: str, *, default: int | None = None) -> int:
        value = self.config.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10_000:
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected a whole number")
        return value

    def small(self, key: str, *, default: float) -> float:
        found = self.config.get(key)
        value = default if found is None else found
        if not isinstance(value, int | float) or not 0 < value < 1:
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected a small positive number")
        return float(value)

    def activation(self, key: str) -> Activation:
        name = self.config.get(key)
        if not isinstance(name, str) or name not in HIDDEN_ACTIVATIONS:
            raise FolderError(f"{self.config_file}: activation {quote(str(name))} is unknown; known are {', '.join(HIDDEN_ACTIVATIONS)}")
        return HIDDEN_ACTIVATIONS[name]

    def _find_prefix(self) -> str:
        for prefix in self.names.prefixes:
            if prefix + "embeddings.word_embeddings.weight" in self.weights:
                return prefix
        raise FolderError(f"{self.where}: the weights hold no word embeddings of a {self.family} encoder")


def find_type_row(backbone: Backbone) -> Floats:
    """Return the embedding of segment 0, or zeros."""
    if backbone.types_E is None:
        return np.zeros(backbone.words_VE.shape[1], np.float32)
    row: Floats = backbone.types_E[0]
    return row
