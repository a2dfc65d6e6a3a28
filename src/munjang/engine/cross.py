"""A model folder with a cross-encoder in it → a running scorer of pairs of token ids.

Both texts stand in one input; the encoder's last layer is computed for the first token alone, because the head reads nothing else. Comes
in: ids and segment numbers. Goes out: logits, (B, labels).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from munjang.engine.backbone import Backbone, read_backbone
from munjang.engine.devices import CPU, Placement
from munjang.engine.encoder_graph import write_encoder
from munjang.engine.folder import SETTINGS_FILE, ModelFolder, fingerprint
from munjang.engine.graph_cache import keep_graph, make_cache_key
from munjang.engine.head_graph import write_pooling
from munjang.engine.jsonfile import read_object
from munjang.engine.layout import Feed, TokenLayout
from munjang.engine.linear import write_activation
from munjang.engine.modules import HIDDEN_ACTIVATIONS, TORCH_ACTIVATIONS, Activation, TransformerModule
from munjang.engine.onnxgraph import GraphBuilder
from munjang.engine.placed_graph import list_inputs, make_builder, make_feed, make_layout, make_writer, read_types
from munjang.engine.session import CachedGraph, check_run, finish_graph, keep_releasing, start_graph
from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError, quote
from munjang.types import Vectors

HeadPooling: TypeAlias = Literal["cls", "mean", "lasttoken", "late"]
"""What a head reads: the first token, the mean of all, the last one; or all, whose mean is taken behind the dense layer ("late")."""


@dataclass(frozen=True)
class HeadNames:
    """Where an architecture keeps its head: a dense layer with an activation, or none, a norm in some, and the layer of the logits."""

    dense: str
    activation: Activation
    out: str
    norm: str = ""
    activation_key: str = ""
    """The key of config.json that names another activation."""
    bias_key: str = ""
    """The key of config.json that gives the dense layer a bias; without one it has it."""
    pooling_key: str = ""
    """The key of config.json that may ask for another pooling than `pooling`."""
    poolings: tuple[tuple[str, HeadPooling], ...] = (("cls", "cls"), ("mean", "mean"))
    """The poolings that it may ask for, by the names of config.json."""
    pooling: HeadPooling = "cls"
    out_bias: bool = True


_SCORE = HeadNames("", "identity", "score", pooling="lasttoken", out_bias=False)
_CLASSIFIER_TANH = HeadNames("classifier.dense", "tanh", "classifier.out_proj")
HEADS: dict[str, HeadNames] = {
    "BertForSequenceClassification": HeadNames("bert.pooler.dense", "tanh", "classifier"),
    "RobertaForSequenceClassification": _CLASSIFIER_TANH,
    "XLMRobertaForSequenceClassification": _CLASSIFIER_TANH,
    "CamembertForSequenceClassification": _CLASSIFIER_TANH,
    "MPNetForSequenceClassification": _CLASSIFIER_TANH,
    "ElectraForSequenceClassification": HeadNames("classifier.dense", "gelu", "classifier.out_proj"),
    "DistilBertForSequenceClassification": HeadNames("pre_classifier", "relu", "classifier"),
    "AlbertForSequenceClassification": HeadNames("albert.pooler", "tanh", "classifier"),
    "DebertaV2ForSequenceClassification": HeadNames("pooler.dense", "gelu", "classifier", activation_key="pooler_hidden_act"),
    "ModernBertForSequenceClassification": HeadNames(
        "head.dense",
        "gelu",
        "classifier",
        norm="head.norm",
        activation_key="classifier_activation",
        bias_key="classifier_bias",
        pooling_key="classifier_pooling",
    ),
    "GteForSequenceClassification": HeadNames("gte.pooler.dense", "tanh", "classifier"),
    "NomicBertForSequenceClassification": HeadNames("nomic_bert.pooler.dense", "tanh", "classifier"),
    "NewForSequenceClassification": HeadNames("new.pooler.dense", "tanh", "classifier"),
    "JinaEmbeddingsV3ForSequenceClassification": _CLASSIFIER_TANH,
    "EuroBertForSequenceClassification": HeadNames(
        "dense",
        "gelu",
        "classifier",
        pooling_key="classifier_pooling",
        poolings=(("bos", "cls"), ("mean", "mean"), ("late", "late")),
        pooling="late",
    ),
    "Qwen3ForSequenceClassification": _SCORE,
    "Gemma3TextForSequenceClassification": _SCORE,
}


OWN_SETTINGS = "munjang"
"""The key of config.json under which our own settings stand; other tools pass over it."""


@dataclass(frozen=True)
class CrossHead:
    """A cross-encoder's head: tensor names, labels, and the activation that turns a logit into a score."""

    names: HeadNames
    labels: tuple[str, ...]
    activation: Activation
    share: float = 1.0
    """How much say it asks for where it orders hits that another ranking found."""
    pooling: HeadPooling = "cls"
    dense_bias: bool = True


def read_cross_head(folder: ModelFolder) -> CrossHead:
    """Describe the head of the cross-encoder in `folder`."""
    base = folder.base
    if folder.kind != "cross" or not isinstance(base, TransformerModule):
        raise FolderError(
            f"{folder.path}: holds a sentence encoder, which turns single texts into vectors and does not score pairs\n"
            "  use it with `munjang encode`, `munjang similar` or SentenceEncoder.load; give a cross-encoder here"
        )
    architectures = base.config.get("architectures") or []
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    if name not in HEADS:
        raise FolderError(f"{folder.path}: architecture {quote(name)} is not a cross-encoder that runs here; known are {', '.join(HEADS)}")
    labels = read_labels(folder, base.config)
    names = HEADS[name]
    return CrossHead(
        names=replace(names, activation=_read_inner_activation(base, names)),
        labels=labels,
        activation=read_activation(folder, base.config, len(labels)),
        share=read_rerank_share(folder, base.config),
        pooling=_read_pooling(base, names),
        dense_bias=not names.bias_key or bool(base.config.get(names.bias_key)),
    )


def _read_inner_activation(base: TransformerModule, names: HeadNames) -> Activation:
    name = base.config.get(names.activation_key) if names.activation_key else None
    if name is None:
        return names.activation
    if not isinstance(name, str) or name not in HIDDEN_ACTIVATIONS:
        raise FolderError(f"{base.folder / 'config.json'}: {names.activation_key} {quote(str(name))} is unknown")
    return HIDDEN_ACTIVATIONS[name]


def _read_pooling(base: TransformerModule, names: HeadNames) -> HeadPooling:
    asked = base.config.get(names.pooling_key) if names.pooling_key else None
    if asked is None:
        return names.pooling
    for name, pooling in names.poolings:
        if asked == name:
            return pooling
    known = " or ".join(repr(name) for name, _ in names.poolings)
    raise FolderError(f"{base.folder / 'config.json'}: {names.pooling_key} is {quote(str(asked))}, expected {known}")


def read_labels(folder: ModelFolder, config: dict[str, Any]) -> tuple[str, ...]:
    """Return the labels' names, which config.json lists or counts."""
    named = config.get("id2label")
    if isinstance(named, dict) and named:
        try:
            ordered = sorted((int(number), str(label)) for number, label in named.items())
        except ValueError:
            raise FolderError(f"{folder.path}: the keys of 'id2label' must be whole numbers") from None
        return tuple(label for _, label in ordered)
    count = config.get("num_labels", 2)
    if not isinstance(count, int) or not 1 <= count <= 100_000:
        raise FolderError(f"{folder.path}: num_labels is {quote(str(count))}, expected a positive whole number")
    return tuple(f"LABEL_{number}" for number in range(count))


def read_activation(folder: ModelFolder, config: dict[str, Any], labels: int) -> Activation:
    """Return what turns a logit into a score."""
    settings = read_object(folder.path / SETTINGS_FILE) if (folder.path / SETTINGS_FILE).is_file() else {}
    inner = config.get("sentence_transformers")
    name = settings.get("activation_fn") or (inner.get("activation_fn") if isinstance(inner, dict) else None)
    name = name or config.get("sbert_ce_default_activation_function")
    if name is None:
        return "sigmoid" if labels == 1 else "identity"
    if name not in TORCH_ACTIVATIONS:
        raise FolderError(f"{folder.path}: activation {quote(str(name))} is not one that Munjang knows; no code is loaded")
    return TORCH_ACTIVATIONS[name]


def read_rerank_share(folder: ModelFolder, config: dict[str, Any]) -> float:
    """Return the weight that the folder asks for in re-ranking."""
    own = config.get(OWN_SETTINGS)
    share = own.get("rerank_share", 1.0) if isinstance(own, dict) else 1.0
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise FolderError(f"{folder.path / 'config.json'}: rerank_share is {quote(str(share))}, expected more than 0 and at most 1")
    return float(share)


PairIds = tuple[Sequence[int], Sequence[int]]
"""The ids of a pair and their segment numbers."""


class CrossEngine:
    """Turns pairs of token ids into logits; safe from many threads."""

    def __init__(self, folder: ModelFolder, *, placement: Placement = CPU, threads: int | None = None) -> None:
        self.head, self.placement = read_cross_head(folder), placement
        load = _load_graph if placement.compute == "int8" else _write_graph
        graph = load(folder, self.head, placement)
        self.first_position = graph.facts["first_position"]
        self.max_tokens: int = graph.facts["max_tokens"]
        self.vocabulary_size = graph.facts["vocabulary_size"]
        self._has_types = bool(graph.facts["has_types"])
        self._session = start_graph(graph, threads=threads, placement=placement)
        check_run(lambda: self.logits([([0, 0], [0, 0]), ([0], [0])]), placement)

    def logits_of_batches(self, batches: Sequence[Sequence[PairIds]]) -> Iterator[Vectors]:
        """Yield the logits of each batch in order, computed on all threads."""
        return (arrays[0] for arrays in self._session.run_many((self._feed(batch) for batch in batches), ["logits"]))

    def logits(self, pairs: Sequence[PairIds]) -> Vectors:
        """Return the logits of one batch."""
        return self._session.run(self._feed(pairs), ["logits"])[0]

    def _feed(self, pairs: Sequence[PairIds]) -> Feed:
        types = [types for _, types in pairs] if self._has_types else None
        return make_feed(self.placement, [ids for ids, _ in pairs], first_position=self.first_position, types=types)


def _load_graph(folder: ModelFolder, head: CrossHead, placement: Placement) -> CachedGraph:
    """Take the quantised graph from the cache, or write it and keep it."""
    key = make_cache_key(fingerprint(folder), "int8", "cross")
    return keep_graph(key, lambda: _write_graph(folder, head, placement))


def _write_graph(folder: ModelFolder, head: CrossHead, placement: Placement) -> CachedGraph:
    """Write the graph from token ids to logits."""
    base = folder.base
    assert isinstance(base, TransformerModule)  # what read_cross_head checked
    weights = find_weights(base.folder)
    with keep_releasing(weights.release if placement.compute == "int8" else None):  # quantising reads all of the files
        return _write_with(weights, base, folder, head, placement)


def _write_with(weights: Weights, base: TransformerModule, folder: ModelFolder, head: CrossHead, placement: Placement) -> CachedGraph:
    backbone = read_backbone(base, weights)
    has_types = backbone.types_E is not None and backbone.types_E.shape[0] > 1
    builder = make_builder(placement)
    layout, first_only = make_layout(builder, placement, first_position=backbone.first_position), head.pooling == "cls"
    types = read_types(builder, placement) if has_types else None
    out = write_encoder(builder, backbone, layout, make_writer(builder, placement.compute), first_only=first_only, types=types)
    _write_head(builder, out.hidden, layout, head, weights, backbone, folder)
    inputs = list_inputs(placement, types=has_types)
    facts = {
        "first_position": backbone.first_position,
        "max_tokens": backbone.max_tokens,
        "vocabulary_size": int(backbone.words_VE.shape[0]),
        "has_types": int(has_types),
    }
    return replace(finish_graph(builder, inputs, [("logits", ["B", len(head.labels)])]), facts=facts, release=weights.release)


def _write_head(
    builder: GraphBuilder, x: str, layout: TokenLayout, head: CrossHead, weights: Weights, backbone: Backbone, folder: ModelFolder
) -> None:
    width, names = backbone.dimension, head.names
    if head.pooling in ("mean", "lasttoken"):
        x = write_pooling(builder, x, layout, "mean" if head.pooling == "mean" else "lasttoken")
    if names.dense:
        dense = _add_arrays(builder, weights, names.dense, "head.dense", (width, width), folder, bias=head.dense_bias)
        x = write_activation(builder, builder.add("Gemm", [x, *dense]), names.activation)
    if names.norm:
        x = _write_head_norm(builder, x, weights, names.norm, backbone, folder)
    if head.pooling == "late":  # the mean of the logits is the logits of the mean
        x = write_pooling(builder, x, layout, "mean")
    scored = _add_arrays(builder, weights, names.out, "head.out", (len(head.labels), width), folder, bias=names.out_bias)
    builder.name_output(builder.add("Gemm", [x, *scored]), "logits")


def _write_head_norm(builder: GraphBuilder, x: str, weights: Weights, name: str, backbone: Backbone, folder: ModelFolder) -> str:
    final = backbone.final_norm
    assert final is not None  # a head with a norm stands on a pre-norm encoder
    arrays = _add_arrays(builder, weights, name, "head.norm", (backbone.dimension,), folder, bias=f"{name}.bias" in weights)
    if len(arrays) < 2:
        arrays.append(builder.array("head.norm.bias", np.zeros(backbone.dimension, np.float32)))
    return builder.add("LayerNormalization", [x, *arrays], axis=-1, epsilon=final.epsilon)


def _add_arrays(
    builder: GraphBuilder, weights: Weights, name: str, new_name: str, shape: tuple[int, ...], folder: ModelFolder, *, bias: bool
) -> list[str]:
    """Keep a weight, transposed, and its bias under a new name; refuse other shapes."""
    parts = {"weight": shape, "bias": shape[:1]} if bias else {"weight": shape}
    found = [weights.shape(f"{name}.{part}") if f"{name}.{part}" in weights else None for part in parts]
    if found != list(parts.values()):
        raise FolderError(f"{folder.path}: the head's {name!r} has shapes {found}, expected {list(parts.values())}")
    return [builder.array(f"{new_name}.{part}", weights[f"{name}.{part}"].T) for part in parts]
