"""A graph and its weights → something that runs, on as many threads as there are cores.

One onnxruntime session with one thread of its own is shared by a pool of Python threads: for batches of this size that is faster than one
run on all cores, and onnxruntime releases the GIL. Weights are handed over from memory, so the graph itself is a few kilobytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime

from munjang.engine.cache import CachedGraph
from munjang.engine.onnxgraph import GraphPen, Input
from munjang.engine.packing import Feed
from munjang.limits import usable_cores

Arrays = list[np.ndarray[Any, Any]]

OUTSIDE_BYTES = 1024
"""Larger arrays are handed to the session from memory; smaller ones stand in the graph."""

ERRORS_ONLY = 3
"""onnxruntime's log level; its warnings speak of graph rewriting and are of no use to users."""


class Session:
    """Runs one graph; safe from many threads at once."""

    def __init__(self, model: bytes, weights: Mapping[str, np.ndarray[Any, Any]], *, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # shapes change from run to run; remembered patterns would only grow
        options.log_severity_level = ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        if kept:
            options.add_external_initializers(list(weights), kept)
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.threads = threads or usable_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._pool_owner = 0

    def run(self, feed: Feed, outputs: list[str]) -> Arrays:
        """Run once, in the calling thread."""
        found: Arrays = self._session.run(outputs, feed)
        return found

    def run_many(self, feeds: Iterable[Feed], outputs: list[str]) -> Iterator[Arrays]:
        """Run every feed on the pool and yield results in order; few feeds are held at once."""
        waiting: list[Future[Arrays]] = []
        pool = self._workers()
        try:
            for feed in feeds:
                waiting.append(pool.submit(self.run, feed, outputs))
                if len(waiting) > 2 * self.threads:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_owner != os.getpid():  # threads do not survive a fork
            self._pool, self._pool_owner = ThreadPoolExecutor(self.threads, thread_name_prefix="munjang"), os.getpid()
        return self._pool


def finished_graph(pen: GraphPen, inputs: Iterable[Input], outputs: Iterable[tuple[str, list[Any]]]) -> CachedGraph:
    """Return what the pen wrote: a small graph, and the large weights beside it."""
    large = {name: array for name, array in pen.initializers.items() if array.nbytes > OUTSIDE_BYTES}
    model = pen.model(list(inputs), list(outputs), outside=frozenset(large))
    return CachedGraph(model.SerializeToString(), large)


def open_session(
    pen: GraphPen, inputs: Iterable[Input], outputs: Iterable[tuple[str, list[Any]]], *, threads: int | None = None
) -> Session:
    """Start a session for what the pen wrote."""
    graph = finished_graph(pen, inputs, outputs)
    return Session(graph.model, graph.weights, threads=threads)
