"""The weights of an encoder, whatever its family calls them → one common shape.

Comes in: a transformer module of a folder. Goes out: a `Backbone`, its shapes checked. A family is a table of names (`families.py`); what
differs in mathematics is a part that a layer has or has not: a gate, norms before or after the sums, rotary positions, the span that
attention sees, tables of relative positions.

Shapes: V pieces, P positions, E embedding width, D hidden width, F feed-forward width. Linear weights are stored (in, out): y = x @ w + b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.adapters import LowRank, name_originals
from munjang.engine.attention_shape import AttentionShape, read_attention_shapes
from munjang.engine.deberta import Convolution, RelativePositions, RelativeTables, compute_tables, read_convolution, read_relative_positions
from munjang.engine.families import FAMILIES, OTHER_NAMES, FamilyNames, find_family
from munjang.engine.modules import Activation, TransformerModule, list_tasks
from munjang.engine.tensor_reader import Linear, Norm, TensorReader
from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError, quote
from munjang.types import Floats, Ints


@dataclass(frozen=True)
class PostNorms:
    """Norms after each residual sum."""

    attention: Norm
    out: Norm


@dataclass(frozen=True)
class PreNorms:
    """Norms before attention and feed-forward part, and on what these give before it is added."""

    before_attention: Norm | None
    after_attention: Norm | None
    before_mlp: Norm
    after_mlp: Norm | None


@dataclass(frozen=True)
class EncoderLayer:
    """One transformer layer."""

    query: Linear
    key: Linear
    value: Linear
    attention_out: Linear
    up: Linear
    down: Linear
    gate: Linear | None
    norms: PostNorms | PreNorms
    shape: AttentionShape
    query_norm: Norm | None = None
    key_norm: Norm | None = None
    """Norms of each head's queries and keys."""
    relative: RelativeTables | None = None
    """DeBERTa's tables of relative positions."""


@dataclass(frozen=True)
class Backbone:
    """An encoder's weights and the few facts that its graph needs."""

    family: str
    words_VE: Floats
    positions_PE: Floats | None
    """None where positions are not added to the embeddings."""
    types_E: Floats | None
    """One row per segment, or None where the family has no segments."""
    embedding_norm: Norm | None
    projection: Linear | None
    layers: tuple[EncoderLayer, ...]
    final_norm: Norm | None
    heads: int
    activation: Activation
    first_position: int
    max_tokens: int
    """Positions that one text can have."""
    relative_bias: Floats | None
    """MPNet: (buckets, heads)."""
    word_scale: float = 1.0
    """What the words' embeddings are multiplied by."""
    norms_projection: bool = False
    """Whether the embeddings are normed behind the projection, and not before it."""
    convolution: Convolution | None = None
    buckets: Ints | None = None
    """DeBERTa: the row of the relative tables for every distance, from −(max_tokens − 1) on."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks that the model has adapters for."""
    low_words: LowRank | None = None
    low_types: LowRank | None = None

    @property
    def dimension(self) -> int:
        """Width of a token vector."""
        return int(self.layers[-1].down.w.shape[1])


def read_backbone(module: TransformerModule, weights: Weights | None = None) -> Backbone:
    """Read the encoder that `module` describes."""
    family = find_family(module.config)
    if family not in FAMILIES:
        raise FolderError(
            f"{module.folder / 'config.json'}: model_type {quote(family)} does not run on the fast engine; it runs {', '.join(FAMILIES)}\n"
            "  the extra 'train' trains other families, and in Python encodes with them: munjang.train.load(FOLDER).encode(texts)"
        )
    weights = find_weights(module.folder) if weights is None else weights
    name_originals(weights)
    names = _find_names(module, weights, family)
    reader = _BackboneReader(module, weights, family, names)
    reader.tasks = list_tasks(module)
    return reader.read()


def _find_names(module: TransformerModule, weights: Weights, family: str) -> FamilyNames:
    """Return the set of names under which this model was saved."""
    sets = (FAMILIES[family], *OTHER_NAMES.get(family, ()))
    for names in sets:
        first = names.layer.format(0) + names.inner + names.attention_out + ".weight"
        named = any(prefix + names.words in weights and prefix + first in weights for prefix in names.prefixes)
        if named and names.layers_key in module.config:
            return names
    if not any(prefix + names.words in weights for names in sets for prefix in names.prefixes):
        raise FolderError(f"{module.folder}: the weights hold no word embeddings of a {family} encoder")
    return FAMILIES[family]


class _BackboneReader(TensorReader):
    """Puts the tensors of one family together."""

    relative: RelativePositions | None = None
    tasks: tuple[str, ...] = ()

    def read(self) -> Backbone:
        names = self.names
        words = self.table(names.words)
        deberta = self.family == "deberta-v2"
        has_positions = bool(names.positions) and not (deberta and not self.flag("position_biased_input", default=True))
        has_types = bool(names.types) and not (names.types_key and not self.whole(names.types_key, default=names.type_count))
        positions = self.table(names.positions, words.shape[1]) if has_positions else None
        types = self.table(names.types, words.shape[1]) if has_types else None
        has_projection = bool(names.projection) and self.has(names.projection + ".weight")
        projection = self.linear(names.projection, bias=names.projection_bias) if has_projection else None
        width = projection.w.shape[1] if projection else words.shape[1]
        self.refuse_decoder()
        heads, count = self.whole(names.heads_key), self.whole(names.layers_key)
        shapes = read_attention_shapes(self, heads=heads, layers=count, width=width)
        first_position = self.whole("pad_token_id", default=1) + 1 if names.offset_by_padding else 0
        longest = self.size(names.positions_key) if positions is None else len(positions) - first_position
        self.relative = read_relative_positions(self, width=width, longest=longest) if deberta else None
        backbone = Backbone(
            family=self.family,
            words_VE=words,
            positions_PE=positions,
            types_E=types,
            embedding_norm=self.norm(names.embedding_norm, width if deberta else words.shape[1]) if names.embedding_norm else None,
            projection=projection,
            layers=self.all_layers(width, shapes),
            final_norm=self.norm(names.final_norm, width) if names.final_norm else None,
            heads=heads,
            activation=self.activation(names.activation_key),
            first_position=first_position,
            max_tokens=longest,
            relative_bias=self.table("encoder.relative_attention_bias.weight") if self.family == "mpnet" else None,
            word_scale=float(np.float32(width**0.5)) if self.family == "gemma3_text" else 1.0,
            norms_projection=deberta,
            convolution=read_convolution(self, width) if deberta else None,
            buckets=self.relative.buckets if self.relative else None,
            tasks=self.tasks,
            low_words=self.low_rank_rows(names.words, words),
            low_types=self.low_rank_rows(names.types, types) if names.types else None,
        )
        self.check(backbone)
        return backbone

    def check(self, backbone: Backbone) -> None:
        if self.tasks and not any(layer.query.low for layer in backbone.layers):
            raise FolderError(f"{self.where}: config.json names the tasks {quote(', '.join(self.tasks))}, but the weights hold no adapters")
        bias = backbone.relative_bias
        if bias is not None and (bias.shape[1] != backbone.heads or len(bias) < 4):
            raise FolderError(f"{self.where}: relative_attention_bias has shape {bias.shape}, expected one column per head")
        if backbone.max_tokens < 1 and backbone.positions_PE is not None:
            raise FolderError(f"{self.where}: {backbone.positions_PE.shape[0]} positions leave no room for a text")

    def all_layers(self, width: int, shapes: list[AttentionShape]) -> tuple[EncoderLayer, ...]:
        if self.family != "albert":
            return tuple(self.layer(number, self.names.layer.format(number), width, shape) for number, shape in enumerate(shapes))
        groups, inner = self.size("num_hidden_groups", default=1), self.size("inner_group_num", default=1)
        if groups > len(shapes):
            raise FolderError(f"{self.config_file}: {groups} groups of layers for {len(shapes)} layers")
        at = [[self.names.layer.format(group) + f"albert_layers.{place}." for place in range(inner)] for group in range(groups)]
        held = [[self.layer(group, name, width, shapes[0]) for name in names] for group, names in enumerate(at)]
        return tuple(layer for number in range(len(shapes)) for layer in held[number * groups // len(shapes)])

    def layer(self, number: int, at: str, width: int, shape: AttentionShape) -> EncoderLayer:
        names = self.names
        query, key, value = self.attention_inputs(at, shape)
        up, gate = self.feed_forward_inputs(at)
        layer = EncoderLayer(
            query=query,
            key=key,
            value=value,
            attention_out=self.linear(at + names.attention_out, bias=names.attention_bias),
            up=up,
            down=self.linear(at + names.down, bias=names.down_bias),
            gate=gate,
            norms=self.norms(number, at, width),
            shape=shape,
            query_norm=self.norm(at + names.query_norm, shape.size) if names.query_norm else None,
            key_norm=self.norm(at + names.key_norm, shape.size) if names.key_norm else None,
            relative=compute_tables(self, at, self.relative, query=query, key=key, scale=shape.scale) if self.relative else None,
        )
        inner = layer.up.w.shape[1]
        expected = {"query": (width, shape.width), "key": (width, shape.key_width), "value": (width, shape.key_width)}
        expected |= {"attention_out": (shape.width, width), "up": (width, inner), "down": (inner, width)}
        expected |= {"gate": (width, inner)} if gate else {}
        for part, wanted in expected.items():
            found = getattr(layer, part).w.shape
            if found != wanted:
                raise FolderError(f"{self.where}: layer {number}'s {part} has shape {found}, expected {wanted}")
        return layer

    def attention_inputs(self, at: str, shape: AttentionShape) -> tuple[Linear, Linear, Linear]:
        names = self.names
        if names.qkv:
            query, key, value = self.split(at + names.qkv, (shape.width, shape.key_width, shape.key_width), bias=names.attention_bias)
        else:
            query, key, value = (self.linear(at + part, bias=names.attention_bias) for part in (names.query, names.key, names.value))
        return query, key, value

    def feed_forward_inputs(self, at: str) -> tuple[Linear, Linear | None]:
        """Return the layer's `up`, and its `gate` if it has one."""
        names = self.names
        if names.gate_up:
            gate, up = self.split(at + names.gate_up, 2, bias=names.up_bias)
            return up, gate
        if names.up_gate:
            up, gate = self.split(at + names.up_gate, 2, bias=names.up_bias)
            return up, gate
        return self.linear(at + names.up, bias=names.up_bias), self.linear(at + names.gate, bias=names.up_bias) if names.gate else None

    def norms(self, number: int, at: str, width: int) -> PostNorms | PreNorms:
        names = self.names
        if not names.before_mlp:
            return PostNorms(self.norm(at + names.attention_norm, width), self.norm(at + names.out_norm, width))
        first_is_normed = self.family == "modernbert" and number == 0  # its embeddings are normed already
        return PreNorms(
            before_attention=None if first_is_normed else self.norm(at + names.before_attention, width),
            after_attention=self.norm(at + names.after_attention, width) if names.after_attention else None,
            before_mlp=self.norm(at + names.before_mlp, width),
            after_mlp=self.norm(at + names.after_mlp, width) if names.after_mlp else None,
        )

    def refuse_decoder(self) -> None:
        kind = self.config.get("position_embedding_type", "absolute")
        if kind not in (None, "absolute") and not self.names.theta:
            raise FolderError(f"{self.config_file}: position_embedding_type {quote(str(kind))} does not run on the fast engine")
        if self.config.get("is_decoder") or self.config.get("add_cross_attention"):
            raise FolderError(f"{self.config_file}: a decoder, expected an encoder")


def find_type_row(backbone: Backbone) -> Floats:
    """Return the embedding of segment 0, or zeros."""
    if backbone.types_E is None:
        return np.zeros(backbone.words_VE.shape[1], np.float32)
    row: Floats = backbone.types_E[0]
    return row
