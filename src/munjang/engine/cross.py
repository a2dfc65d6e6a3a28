"""A model folder with a cross-encoder in it → a running scorer of pairs of token ids.

Both texts stand in one input; the encoder's last layer is computed for the first token alone, because the head reads nothing else. Comes
in: ids and segment numbers. Goes out: logits, (B, labels).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from munjang.engine.backbone import Backbone, read_backbone
from munjang.engine.cache import CachedGraph, cache_key, load_graph, store_graph
from munjang.engine.cross_folder import CrossHead, HeadNames, read_cross_head
from munjang.engine.encoder_graph import write_activation, write_encoder
from munjang.engine.fingerprint import fingerprint
from munjang.engine.folder import ModelFolder
from munjang.engine.layout import PACKED_INPUTS, PackedLayout
from munjang.engine.linear import FloatWriter, Int8Writer, LinearWriter
from munjang.engine.modules import TransformerModule
from munjang.engine.onnxgraph import INT64, GraphPen
from munjang.engine.packing import Feed, pack
from munjang.engine.session import Session, finished_graph
from munjang.engine.transformer import Compute
from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError
from munjang.types import Vectors

PairIds = tuple[Sequence[int], Sequence[int]]
"""The ids of a pair and their segment numbers."""

TYPES_INPUT = ("types", INT64, ["T"])


class CrossEngine:
    """Turns pairs of token ids into logits; safe from many threads."""

    def __init__(self, folder: ModelFolder, *, compute: Compute = "float32", threads: int | None = None) -> None:
        self.head = read_cross_head(folder)
        graph = _cached_graph(folder, self.head) if compute == "int8" else _score_graph(folder, self.head, compute)
        self.first_position = graph.facts["first_position"]
        self.max_tokens: int = graph.facts["max_tokens"]
        self.vocabulary_size = graph.facts["vocabulary_size"]
        self._has_types = bool(graph.facts["has_types"])
        self._session = Session(graph.model, graph.weights, threads=threads)

    def logits_of_batches(self, batches: Sequence[Sequence[PairIds]]) -> Iterator[Vectors]:
        """Yield the logits of each batch in order, computed on all threads."""
        return (arrays[0] for arrays in self._session.run_many((self._feed(batch) for batch in batches), ["logits"]))

    def logits(self, pairs: Sequence[PairIds]) -> Vectors:
        """Return the logits of one batch."""
        return self._session.run(self._feed(pairs), ["logits"])[0]

    def _feed(self, pairs: Sequence[PairIds]) -> Feed:
        feed = pack([ids for ids, _ in pairs], first_position=self.first_position)
        if self._has_types:
            feed["types"] = np.concatenate([np.asarray(types, np.int64) for _, types in pairs])
        return feed


def _cached_graph(folder: ModelFolder, head: CrossHead) -> CachedGraph:
    """Take the quantised graph from the cache, or write it and keep it."""
    key = cache_key(fingerprint(folder), "int8", "cross")
    graph = load_graph(key)
    if graph is None:
        graph = _score_graph(folder, head, "int8")
        store_graph(key, graph)
    return graph


def _score_graph(folder: ModelFolder, head: CrossHead, compute: Compute) -> CachedGraph:
    """Write the graph from token ids to logits."""
    base = folder.base
    assert isinstance(base, TransformerModule)  # what read_cross_head checked
    weights = find_weights(base.folder)
    backbone = read_backbone(base, weights)
    has_types = backbone.types_E is not None and backbone.types_E.shape[0] > 1
    pen = GraphPen()
    writer: LinearWriter = FloatWriter(pen) if compute == "float32" else Int8Writer(pen)
    out = write_encoder(pen, backbone, PackedLayout(pen), writer, first_only=True, types="types" if has_types else None)
    _write_head(pen, out.hidden, head, weights, backbone, folder)
    inputs = [*PACKED_INPUTS, TYPES_INPUT] if has_types else list(PACKED_INPUTS)
    facts = {
        "first_position": backbone.first_position,
        "max_tokens": backbone.max_tokens,
        "vocabulary_size": int(backbone.words_VE.shape[0]),
        "has_types": int(has_types),
    }
    return replace(finished_graph(pen, inputs, [("logits", ["B", len(head.labels)])]), facts=facts)


def _write_head(pen: GraphPen, hidden: str, head: CrossHead, weights: Weights, backbone: Backbone, folder: ModelFolder) -> None:
    width, names = backbone.dimension, head.names
    raised = pen.add("Gemm", [hidden, *_linear(pen, weights, names, names.dense, (width, width), folder)])
    scored = _linear(pen, weights, names, names.out, (len(head.labels), width), folder)
    logits = pen.add("Gemm", [write_activation(pen, raised, names.activation), *scored])
    pen.name_output(logits, "logits")


def _linear(pen: GraphPen, weights: Weights, names: HeadNames, name: str, shape: tuple[int, int], folder: ModelFolder) -> list[str]:
    found = [weights.shape(f"{name}.{part}") if f"{name}.{part}" in weights else None for part in ("weight", "bias")]
    if found != [shape, shape[:1]]:
        raise FolderError(f"{folder.path}: the head's {name!r} has shapes {found}, expected {[shape, shape[:1]]}")
    prefix = "head.dense" if name == names.dense else "head.out"
    return [pen.array(f"{prefix}.weight", weights[f"{name}.weight"].T), pen.array(f"{prefix}.bias", weights[f"{name}.bias"])]
