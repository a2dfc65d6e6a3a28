"""A described folder → the engine that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import StaticModule
from munjang.engine.static import StaticEngine
from munjang.engine.transformer import Compute, TransformerEngine
from munjang.types import Vectors


class Engine(Protocol):
    """Turns token ids into vectors; safe from many threads."""

    dimension: int
    hidden_size: int
    layers: int
    heads: int
    vocabulary_size: int
    max_tokens: int | None
    first_position: int

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text, in one run."""
        ...

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        ...

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return every layer's output for one text."""
        ...


def open_engine(folder: ModelFolder, *, compute: Compute = "float32", threads: int | None = None) -> Engine:
    """Start the engine that fits the folder; a static one has nothing to gain from int8."""
    if isinstance(folder.base, StaticModule):
        return StaticEngine(folder, threads=threads)
    return TransformerEngine(folder, compute=compute, threads=threads)
