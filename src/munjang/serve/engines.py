"""Engines that compute in the server's batches, so that whatever a library, an analysis or a re-ranker needs joins the one queue.

A `SentenceEncoder` or `CrossEncoder` over one of these behaves as it does offline, in any thread. What it computes belongs to the request
that the thread works for. A call's first batch may be refused; once it is in, so are its later ones, a few at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from munjang.engine.cross import CrossEngine, PairIds
from munjang.engine.open import Engine
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.pair_classifier import PairClassifier
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.models.ways import Way
from munjang.serve.batcher import Batcher, Lane, Rows
from munjang.serve.work_item import REQUEST_WORK, RequestWork, WorkItem
from munjang.types import Vectors

AT_ONCE = 4
"""Batches of one call that wait or run at the same time."""


class VectorLane:
    """Vectors of texts that share a hidden prefix."""

    def __init__(self, engine: Engine, hidden_prefix: int) -> None:
        self._engine, self._hidden_prefix = engine, hidden_prefix

    def run(self, items: Sequence[Sequence[int]], /) -> Rows:
        """Return one vector per text."""
        return self._engine.vectors(items, hidden_prefix=self._hidden_prefix)


class TokenLane:
    """The vector and the token rows of texts that share a hidden prefix."""

    def __init__(self, engine: Engine, hidden_prefix: int) -> None:
        self._engine, self._hidden_prefix = engine, hidden_prefix

    def run(self, items: Sequence[Sequence[int]], /) -> Rows:
        """Return a vector and token rows for each text."""
        vectors_BD, tokens_TW = self._engine.vectors_and_tokens(items, hidden_prefix=self._hidden_prefix)
        ends = np.cumsum([len(ids) for ids in items])
        return list(zip(vectors_BD, np.split(tokens_TW, ends[:-1]), strict=True))


class LayerLane:
    """Every layer's output, one text after the other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(self, items: Sequence[Sequence[int]], /) -> Rows:
        """Return the layers of each text."""
        return [self._engine.layer_outputs(ids) for ids in items]


class PairLane:
    """Logits of pairs."""

    def __init__(self, engine: CrossEngine) -> None:
        self._engine = engine

    def run(self, items: Sequence[PairIds], /) -> Rows:
        """Return one row of logits per pair."""
        return self._engine.logits(items)


class BatchedEngine:
    """An Engine whose work goes through the batcher."""

    def __init__(self, engine: Engine, batcher: Batcher) -> None:
        self.dimension, self.hidden_size = engine.dimension, engine.hidden_size
        self.layers, self.heads = engine.layers, engine.heads
        self.vocabulary_size, self.max_tokens, self.first_position = engine.vocabulary_size, engine.max_tokens, engine.first_position
        self.placement = engine.placement
        self._engine, self._batcher = engine, batcher
        self._lanes: dict[int, VectorLane] = {}
        self._token_lanes: dict[int, TokenLane] = {}
        self._layer_lane = LayerLane(engine)

    def lane(self, hidden_prefix: int) -> Lane:
        """Return the lane of texts with so many hidden tokens."""
        return self._lanes.setdefault(hidden_prefix, VectorLane(self._engine, hidden_prefix))

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text."""
        return next(self.vectors_of_batches([ids], hidden_prefix=hidden_prefix))

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        return (_stack(rows) for rows in _in_turn(self._batcher, self.lane(hidden_prefix), batches, len))

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text."""
        return next(self.tokens_of_batches([ids], hidden_prefix=hidden_prefix))

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        lane = self._token_lanes.setdefault(hidden_prefix, TokenLane(self._engine, hidden_prefix))
        for rows in _in_turn(self._batcher, lane, batches, len):
            yield _stack([vector_D for vector_D, _ in rows]), np.concatenate([tokens_TW for _, tokens_TW in rows])

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return every layer's output for one text."""
        [[layers]] = _in_turn(self._batcher, self._layer_lane, [[ids]], len)
        found: list[Vectors] = layers
        return found


class BatchedCrossEngine(CrossEngine):
    """A cross-encoder's engine whose work goes through the batcher."""

    def __init__(self, engine: CrossEngine, batcher: Batcher) -> None:  # built from a running engine, so the parent's is not called
        self.head, self.max_tokens = engine.head, engine.max_tokens
        self.first_position, self.vocabulary_size = engine.first_position, engine.vocabulary_size
        self.placement = engine.placement
        self._batcher, self._lane = batcher, PairLane(engine)

    def logits_of_batches(self, batches: Sequence[Sequence[PairIds]]) -> Iterator[Vectors]:
        """Yield the logits of each batch in order."""
        return (_stack(rows) for rows in _in_turn(self._batcher, self._lane, batches, lambda pair: len(pair[0])))

    def logits(self, pairs: Sequence[PairIds]) -> Vectors:
        """Return the logits of one batch."""
        return next(self.logits_of_batches([pairs]))


def batch_encoder(model: SentenceEncoder, batcher: Batcher) -> SentenceEncoder:
    """Return the same model over the batcher."""
    ways = {
        task: Way(way.folder, way.tokenizer, BatchedEngine(way.engine, batcher), way.max_length)
        for task, way in ({model.task: model} | model.ways).items()
    }
    return SentenceEncoder.join_ways(ways, name=model.name, compute=model.compute)


def batch_cross_encoder(model: CrossEncoder, batcher: Batcher) -> CrossEncoder:
    """Return the same cross-encoder over the batcher."""
    engine = BatchedCrossEngine(model.engine, batcher)
    return CrossEncoder(model.folder, model.tokenizer, engine, name=model.name, compute=model.compute, max_length=model.max_length)


def batch_pair_classifier(model: PairClassifier, encoders: Sequence[SentenceEncoder], batcher: Batcher) -> PairClassifier:
    """Return the same pair classifier over the batcher; where its encoder is served too, both compute with the same weights."""
    served = (each for each in encoders if each.fingerprint == model.encoder.fingerprint)
    return PairClassifier(next(served, None) or batch_encoder(model.encoder, batcher), model.head, name=model.name)


def _in_turn(batcher: Batcher, lane: Lane, batches: Sequence[Sequence[Any]], size: Callable[[Any], int]) -> Iterator[Rows]:
    request_work = REQUEST_WORK.get() or RequestWork()
    waiting: deque[WorkItem] = deque()
    try:
        for batch in batches:
            if len(waiting) >= AT_ONCE:
                yield _rows(request_work, waiting)
            sizes = [size(item) for item in batch]
            work_item = batcher.submit_waiting(lane, batch, sizes, work=request_work)
            waiting.append(work_item)
            if request_work.dropped:
                work_item.drop()
        while waiting:
            yield _rows(request_work, waiting)
    finally:
        for work_item in waiting:
            work_item.drop()
            request_work.work_items.discard(work_item)


def _rows(request_work: RequestWork, waiting: deque[WorkItem]) -> Rows:
    work_item = waiting.popleft()
    try:
        return work_item.wait()
    finally:
        request_work.work_items.discard(work_item)


def _stack(rows: Rows) -> Vectors:
    stacked: Vectors = np.stack(list(rows))
    return stacked
