"""A graph and its weights → something that runs, on as many threads as there are cores, or on another device (`devices`).

On the CPU, one onnxruntime session with one thread of its own is shared by a pool of Python threads: for batches of this size that is
faster than one run on all cores, and onnxruntime releases the GIL. Weights are handed over from memory, so the graph itself is a few
kilobytes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime

from munjang.engine.devices import CPU, CPU_PROVIDER, OPENVINO, Placement
from munjang.engine.layout import Feed
from munjang.engine.onnxgraph import GraphBuilder, Input
from munjang.engine.row_table import MemoryTable, RowTable
from munjang.errors import DeviceError, quote
from munjang.limits import usable_cores

NamedArrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class CachedGraph:
    """A graph, the weights that go with it, and what its reader must know about the model."""

    model: bytes
    weights: NamedArrays
    facts: Mapping[str, int] = field(default_factory=dict)
    release: Callable[[], None] | None = None
    """Gives back the memory of mapped files that the weights stand in; a session packs them anew and does not need it."""
    tables: Mapping[str, RowTable] = field(default_factory=dict)
    """Those of which every run gets the rows of its tokens."""


Arrays = list[np.ndarray[Any, Any]]

OUTSIDE_BYTES = 1024
"""Larger arrays are handed to the session from memory; smaller ones stand in the graph."""

ERRORS_ONLY = 3
"""onnxruntime's log level; its warnings speak of graph rewriting and are of no use to users."""


RELEASE_SECONDS = 0.01
FATAL_ONLY = 4
"""For other devices than the CPU: what goes wrong there becomes a DeviceError, and need not be said twice."""


class Session:
    """Runs one graph; safe from many threads at once."""

    def __init__(
        self,
        model: bytes,
        weights: Mapping[str, np.ndarray[Any, Any]],
        *,
        threads: int | None = None,
        placement: Placement = CPU,
        release: Callable[[], None] | None = None,
        tables: Mapping[str, RowTable] | None = None,
    ) -> None:
        self._tables = {name: table.own() for name, table in (tables or {}).items()}
        cores = threads or usable_cores()
        _trim_heap()
        with keep_releasing(release):
            self._session = _start(model, weights, placement, cores)
        _trim_heap()  # of the copies that onnxruntime packed
        self.threads = min(placement.at_once or cores, cores)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_owner = 0

    def run(self, feed: Feed, outputs: list[str]) -> Arrays:
        """Run once, in the calling thread."""
        rows = {name: table.take(feed["ids"]) for name, table in self._tables.items()}
        found: Arrays = self._session.run(outputs, {**feed, **rows} if rows else feed)
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


def _find_malloc_trim() -> Callable[[int], object]:
    """Return glibc's function, looked up once while this file is imported; with another C library one that does nothing."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim if sys.platform == "linux" else bool
    except (OSError, AttributeError):
        return bool
    return found


_malloc_trim = _find_malloc_trim()


def _trim_heap() -> None:
    """Give back what was freed inside glibc's heap, where copies of weights stay in some starts and not in others."""
    _malloc_trim(0)


@contextmanager
def keep_releasing(release: Callable[[], None] | None) -> Iterator[None]:
    """Give back the memory of mapped files again and again while they are read, so that they never stand in it as a whole."""
    if release is None:
        yield
        return
    done = threading.Event()

    def work() -> None:
        while not done.wait(RELEASE_SECONDS):
            release()

    thread = threading.Thread(target=work, name="munjang-release", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        release()


def _start(model: bytes, weights: NamedArrays, placement: Placement, cores: int) -> Any:
    """Start the graph where it is to run; another device than the CPU must really be used, or it is a DeviceError."""
    precision = "bf16" if placement.compute == "bfloat16" else "f32"
    chosen = {name: value.format(cores=cores, precision=precision) for name, value in placement.options.items()}
    if placement.provider == OPENVINO:
        from munjang.engine.openvino_graph import OpenvinoGraph

        return OpenvinoGraph(model, weights, chosen)
    options = _make_options(placement)
    kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
    if kept:
        options.add_external_initializers(list(weights), kept)
    if placement.provider == CPU_PROVIDER:
        return onnxruntime.InferenceSession(model, options, providers=[CPU_PROVIDER])
    try:  # what the device cannot do runs on the CPU; onnxruntime's own falling back is off, since it would print and go on
        started = onnxruntime.InferenceSession(model, options, providers=[(placement.provider, chosen), CPU_PROVIDER], enable_fallback=0)
    except Exception as error:  # whatever a driver raises
        raise DeviceError(f"{placement.provider} does not start: {quote(_first_line(error), 200)}") from error
    if placement.provider not in started.get_providers():
        raise DeviceError(f"{placement.provider} is installed and does not start; its driver or its libraries are missing")
    return started


def _make_options(placement: Placement) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # shapes change from run to run; remembered patterns would only grow
    options.log_severity_level = ERRORS_ONLY if placement.provider == CPU_PROVIDER else FATAL_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def check_run(run: Callable[[], object], placement: Placement) -> None:
    """Compute something small on a device that has just started; one that cannot is a DeviceError. The CPU always can."""
    if placement.provider == CPU_PROVIDER:
        return
    try:
        run()
    except Exception as error:  # whatever a driver raises
        raise DeviceError(f"{placement.provider} starts but does not compute: {quote(_first_line(error), 200)}") from error


def finish_graph(builder: GraphBuilder, inputs: Iterable[Input], outputs: Iterable[tuple[str, list[Any]]]) -> CachedGraph:
    """Return what the builder wrote: a small graph, and the large weights beside it."""
    large = {name: array for name, array in builder.initializers.items() if array.nbytes > OUTSIDE_BYTES}
    model = builder.model(list(inputs), list(outputs), outside=frozenset(large))
    tables = {name: MemoryTable(table) for name, table in builder.tables.items()}
    return CachedGraph(model.SerializeToString(), large, tables=tables)


def start_graph(graph: CachedGraph, *, threads: int | None, placement: Placement) -> Session:
    """Start a session for a graph."""
    return Session(graph.model, graph.weights, threads=threads, placement=placement, release=graph.release, tables=graph.tables)


def open_session(
    builder: GraphBuilder, inputs: Iterable[Input], outputs: Iterable[tuple[str, list[Any]]], *, threads: int | None = None
) -> Session:
    """Start a session for what the builder wrote."""
    graph = finish_graph(builder, inputs, outputs)
    return Session(graph.model, graph.weights, threads=threads)
