"""A described folder → the engine that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from munjang.engine.devices import CPU, Placement
from munjang.engine.folder import ModelFolder
from munjang.engine.head_graph import compute_head_width, write_head, write_normalize
from munjang.engine.modules import StaticModule
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.session import Session, open_session
from munjang.engine.transformer import TransformerEngine
from munjang.engine.weights import find_weights
from munjang.errors import FolderError
from munjang.types import Ints, Vectors


class StaticEngine:
    """Turns token ids into the mean of their vectors."""

    first_position = 0
    layers = 0
    heads = 0
    max_tokens: int | None = None
    placement = CPU

    def __init__(self, folder: ModelFolder, *, threads: int | None = None) -> None:
        module = folder.base
        if not isinstance(module, StaticModule):
            raise FolderError(f"{folder.path}: holds no static embedding")
        self._table_VD, self._row_of = _read_table(module)
        self.vocabulary_size = int(self._table_VD.shape[0] if self._row_of is None else self._row_of.shape[0])
        self.hidden_size = int(self._table_VD.shape[1])
        self._head, self.dimension = _open_head(folder, module, self.hidden_size, threads)

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text."""
        pooled_BD = np.stack([self._mean(one[hidden_prefix:]) for one in ids])
        return pooled_BD if self._head is None else self._head.run({"pooled": pooled_BD}, ["vectors"])[0]

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        return (self.vectors(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text."""
        return self.vectors(ids, hidden_prefix=hidden_prefix), self._rows([number for one in ids for number in one])

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        return (self.vectors_and_tokens(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return the token vectors: the only layer there is."""
        return [self._rows(ids)]

    def _mean(self, ids: Sequence[int]) -> Vectors:
        if not ids:
            return np.zeros(self.hidden_size, np.float32)
        mean: Vectors = self._rows(ids).mean(axis=0, dtype=np.float32)
        return mean

    def _rows(self, ids: Sequence[int]) -> Vectors:
        index = np.asarray(ids, np.int64)
        rows: Vectors = self._table_VD[index if self._row_of is None else self._row_of[index]]
        return rows


def _read_table(module: StaticModule) -> tuple[Vectors, Ints | None]:
    weights = find_weights(module.folder)
    name = next((name for name in ("embedding.weight", "embeddings") if name in weights), None)
    if name is None or len(weights.shape(name)) != 2:
        raise FolderError(f"{module.folder}: expected a tensor 'embedding.weight' or 'embeddings' of two dimensions")
    table_VD = weights[name].astype(np.float32)
    row_of = weights["mapping"].astype(np.int64) if "mapping" in weights else None
    if row_of is not None and (row_of.ndim != 1 or row_of.min(initial=0) < 0 or row_of.max(initial=0) >= len(table_VD)):
        raise FolderError(f"{module.folder}: 'mapping' points outside the embeddings")
    if "weights" in weights:
        factors = weights["weights"].astype(np.float32)
        if row_of is not None:
            table_VD, row_of = table_VD[row_of], None
        if factors.shape != (len(table_VD),):
            raise FolderError(f"{module.folder}: 'weights' has shape {factors.shape}, expected ({len(table_VD)},)")
        table_VD = table_VD * factors[:, None]
    return table_VD, row_of


def _open_head(folder: ModelFolder, module: StaticModule, width: int, threads: int | None) -> tuple[Session | None, int]:
    if len(folder.modules) == 1 and not module.normalize:
        return None, width
    builder = GraphBuilder()
    x = write_normalize(builder, "pooled") if module.normalize else "pooled"
    vectors, dimension = write_head(builder, x, None, folder.modules[1:], width), compute_head_width(folder.modules[1:], width)
    builder.name_output(vectors, "vectors")
    return open_session(builder, [("pooled", FLOAT, ["B", width])], [("vectors", ["B", dimension])], threads=threads), dimension


class Engine(Protocol):
    """Turns token ids into vectors; safe from many threads."""

    dimension: int
    hidden_size: int
    layers: int
    heads: int
    vocabulary_size: int
    max_tokens: int | None
    first_position: int
    placement: Placement
    """Where it computes, and how large its batches are."""

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text, in one run."""
        ...

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        ...

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text, in one run."""
        ...

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        ...

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return every layer's output for one text."""
        ...


def open_engine(folder: ModelFolder, *, placement: Placement = CPU, threads: int | None = None) -> Engine:
    """Start the engine that fits the folder; a static one is a table, which runs on the CPU in float32 wherever it is asked to."""
    if isinstance(folder.base, StaticModule):
        return StaticEngine(folder, threads=threads)
    return TransformerEngine(folder, placement=placement, threads=threads)
