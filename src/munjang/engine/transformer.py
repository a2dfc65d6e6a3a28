"""A model folder with a transformer in it → a running encoder of token ids.

Comes in: a `ModelFolder`. Goes out: vectors for lists of token ids, (B, d). Texts, prompts, long texts and the caller's order are the
business of `models/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from munjang.engine.adapters import ADAPTER
from munjang.engine.backbone import Backbone, read_backbone
from munjang.engine.devices import CPU, Placement
from munjang.engine.encoder_graph import write_encoder
from munjang.engine.folder import ModelFolder, fingerprint
from munjang.engine.graph_cache import keep_graph, make_cache_key
from munjang.engine.head_graph import compute_head_width, reads_first_only, write_head, write_layer_mix
from munjang.engine.layout import PACKED_INPUTS, Feed, PackedLayout, pack
from munjang.engine.linear import FloatWriter
from munjang.engine.modules import LayerMixModule, TransformerModule
from munjang.engine.onnxgraph import GraphBuilder
from munjang.engine.placed_graph import list_inputs, make_builder, make_feed, make_layout, make_writer
from munjang.engine.session import CachedGraph, Session, check_run, finish_graph, keep_releasing, open_session, start_graph
from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError
from munjang.types import Vectors


class TransformerEngine:
    """Turns token ids into vectors; safe from many threads."""

    def __init__(self, folder: ModelFolder, *, placement: Placement = CPU, threads: int | None = None) -> None:
        graph = _load_graph(folder, placement) if _is_kept(folder, placement) else _write_graph(folder, placement)
        facts = graph.facts
        self.first_position = facts["first_position"]
        self.max_tokens: int | None = facts["max_tokens"]
        self.layers, self.heads = facts["layers"], facts["heads"]
        self.hidden_size, self.dimension = facts["hidden_size"], facts["dimension"]
        self.vocabulary_size = facts["vocabulary_size"]
        self.placement = placement
        self._has_adapters, self._adapter = bool(facts["tasks"]), 0
        self._folder, self._threads = folder, threads
        self._session = start_graph(graph, threads=threads, placement=placement)
        self._token_session: Session | None = None
        self._layer_session: Session | None = None
        check_run(lambda: self.vectors([[0, 0], [0]]), placement)

    def adapt(self, number: int) -> TransformerEngine:
        """Return this engine with the adapter of a task, counted from 1; it shares the weights."""
        adapted = copy(self)
        adapted._adapter = number
        return adapted

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text, in one run."""
        return self._session.run(self._feed(ids, hidden_prefix), ["vectors"])[0]

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order, computed on all threads."""
        feeds = (self._feed(ids, hidden_prefix) for ids in batches)
        return (arrays[0] for arrays in self._session.run_many(feeds, ["vectors"]))

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text, in one run."""
        vectors_BD, tokens_TW = self._session_with_tokens().run(self._token_feed(ids, hidden_prefix), ["vectors", "tokens"])
        return vectors_BD, tokens_TW

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order, computed on all threads."""
        feeds = (self._token_feed(ids, hidden_prefix) for ids in batches)
        return ((arrays[0], arrays[1]) for arrays in self._session_with_tokens().run_many(feeds, ["vectors", "tokens"]))

    def expand_tokens(self, ids: Sequence[Sequence[int]], seen: Sequence[int]) -> Vectors:
        """Return one row per token, text behind text, where only the first `seen` tokens of each text are attended to."""
        feed = pack(ids, first_position=self.first_position, seen=seen)
        return self._session_with_tokens().run(feed, ["tokens"])[0]

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return the embedding's and every layer's output for one text, each (tokens, width)."""
        if self._layer_session is None:
            self._layer_session = _open_layer_session(self._folder, self._threads)
        names = [f"layer_{number}" for number in range(self.layers + 1)]
        return self._layer_session.run(self._token_feed([ids], 0), names)

    def _session_with_tokens(self) -> Session:
        """Return the session that has all token rows: the usual one, unless that computes first tokens only or pads its texts."""
        if not reads_first_only(self._folder.modules) and self.placement.layout == "packed":
            return self._session
        if self._token_session is None:
            placement = self.placement if self.placement.layout == "packed" else CPU
            graph = _write_graph(self._folder, placement, every_token=True)
            self._token_session = start_graph(graph, threads=self._threads, placement=placement)
        return self._token_session

    def _token_feed(self, ids: Sequence[Sequence[int]], hidden_prefix: int) -> Feed:
        return self._choose_adapter(pack(ids, first_position=self.first_position, hidden_prefix=hidden_prefix))

    def _feed(self, ids: Sequence[Sequence[int]], hidden_prefix: int) -> Feed:
        return self._choose_adapter(make_feed(self.placement, ids, first_position=self.first_position, hidden_prefix=hidden_prefix))

    def _choose_adapter(self, feed: Feed) -> Feed:
        return {**feed, ADAPTER[0]: np.array(self._adapter)} if self._has_adapters else feed


KEPT_BYTES = (2**24, 2**30)
"""Weights in float32 are kept with their graph from the first of these sizes, where starting gets sooner, up to the second."""


def _is_kept(folder: ModelFolder, placement: Placement) -> bool:
    """Say whether the graph is worth a place in the cache: quantised ones are, and on the CPU those of usual models."""
    if placement.compute == "int8":
        return True
    smallest, largest = KEPT_BYTES
    return placement == CPU and smallest <= _find_weights(folder).bytes() <= largest


def _load_graph(folder: ModelFolder, placement: Placement) -> CachedGraph:
    """Take the graph from the cache, or write it and keep it."""
    base = folder.base
    assert isinstance(base, TransformerModule)  # what TransformerEngine runs
    key = make_cache_key(
        fingerprint(folder), f"{placement.compute}, tokens", str(base.folder.relative_to(folder.path)), *map(str, folder.modules[1:])
    )
    return keep_graph(key, lambda: _write_graph(folder, placement))


def _write_graph(folder: ModelFolder, placement: Placement, *, every_token: bool = False) -> CachedGraph:
    """Write the graph from token ids to the final vector and to token rows; with `every_token` also where only first tokens are pooled."""
    weights = _find_weights(folder)
    with keep_releasing(weights.release if placement.compute == "int8" else None):  # quantising reads all of the files
        return _write_with(weights, folder, placement, every_token=every_token)


def _write_with(weights: Weights, folder: ModelFolder, placement: Placement, *, every_token: bool) -> CachedGraph:
    backbone = _read_backbone(folder, weights)
    builder = make_builder(placement)
    layout = make_layout(builder, placement, first_position=backbone.first_position)
    writer = make_writer(builder, placement.compute)
    pools_first, has_rows = reads_first_only(folder.modules), placement.layout == "packed"
    mixes = any(isinstance(module, LayerMixModule) for module in folder.modules)
    first_only = pools_first and not every_token and not mixes
    out = write_encoder(builder, backbone, layout, writer, first_only=first_only, keep_layers=mixes)
    hidden = write_layer_mix(builder, out, folder.modules)
    pooled_from = builder.add("Gather", [hidden, layout.first_rows()]) if pools_first and not first_only else hidden
    vectors = write_head(builder, pooled_from, layout, folder.modules[1:], backbone.dimension)
    builder.name_output(vectors, "vectors")
    if not first_only and has_rows:
        builder.name_output(hidden, "tokens")
    facts = {
        "first_position": backbone.first_position,
        "max_tokens": backbone.max_tokens,
        "layers": len(backbone.layers),
        "heads": backbone.heads,
        "hidden_size": backbone.dimension,
        "dimension": compute_head_width(folder.modules[1:], backbone.dimension),
        "vocabulary_size": int(backbone.words_VE.shape[0]),
        "tasks": len(backbone.tasks),
    }
    outputs: list[tuple[str, list[str | int]]] = [("vectors", ["B", facts["dimension"]])]
    if not first_only and has_rows:
        outputs.append(("tokens", ["T", backbone.dimension]))
    adapter = [ADAPTER] if backbone.tasks else []
    return replace(finish_graph(builder, [*list_inputs(placement), *adapter], outputs), facts=facts, release=weights.release)


def _open_layer_session(folder: ModelFolder, threads: int | None) -> Session:
    backbone = _read_backbone(folder, _find_weights(folder))
    builder = GraphBuilder()
    out = write_encoder(builder, backbone, PackedLayout(builder), FloatWriter(builder), keep_layers=True)
    outputs = [(f"layer_{number}", ["T", backbone.dimension]) for number in range(len(out.layers))]
    for name, (output, _) in zip(out.layers, outputs, strict=True):
        builder.name_output(name, output)
    return open_session(builder, [*PACKED_INPUTS, *([ADAPTER] if backbone.tasks else [])], outputs, threads=threads)


def _find_weights(folder: ModelFolder) -> Weights:
    if not isinstance(folder.base, TransformerModule):
        raise FolderError(f"{folder.path}: holds no transformer")
    return find_weights(folder.base.folder)


def _read_backbone(folder: ModelFolder, weights: Weights) -> Backbone:
    assert isinstance(folder.base, TransformerModule)  # whose weights these are
    return read_backbone(folder.base, weights)
