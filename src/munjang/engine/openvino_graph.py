"""A graph of standard operators, compiled by OpenVINO: the package `openvino` itself, beside whichever onnxruntime is installed.

It answers as an onnxruntime session does: `run(outputs, feed)`, from many threads at once. Weights go into the model that OpenVINO reads,
so a model is held twice while it is compiled, and protobuf's limit of 2 GiB holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from munjang.engine.onnxgraph import embed_weights
from munjang.errors import DeviceError, quote

LARGEST_MODEL = 2**31 - 2**20
"""Bytes that protobuf writes, less some for what stands around the weights."""
Arrays = Mapping[str, np.ndarray[Any, Any]]


class OpenvinoGraph:
    """Runs one compiled graph."""

    def __init__(self, model: bytes, weights: Arrays, options: Mapping[str, str]) -> None:
        try:
            import openvino

            read = openvino.Core().read_model(_embed(model, weights))
            self._compiled = openvino.Core().compile_model(read, "CPU", dict(options))
        except (ImportError, OSError, RuntimeError) as error:  # RuntimeError is what OpenVINO raises
            raise DeviceError(f"OpenVINO does not start: {quote(str(error).strip().splitlines()[0], 200)}") from error
        self._inputs = {name for port in self._compiled.inputs for name in port.get_names()}
        """What the graph reads; it has no place for other inputs."""
        self._free: SimpleQueue[Any] = SimpleQueue()
        """Requests that no run uses at the moment; each keeps its buffers."""

    def run(self, outputs: Sequence[str], feed: Arrays) -> list[np.ndarray[Any, Any]]:
        """Run once, in the calling thread."""
        try:
            request = self._free.get_nowait()
        except Empty:
            request = self._compiled.create_infer_request()
        try:
            found = request.infer({name: array for name, array in feed.items() if name in self._inputs})  # copies in and out
            return [found[name] for name in outputs]
        finally:
            self._free.put(request)


def _embed(model: bytes, weights: Arrays) -> bytes:
    size = len(model) + sum(array.nbytes for array in weights.values())
    if size > LARGEST_MODEL:
        raise DeviceError(f"OpenVINO gets models of at most 2 GiB here, and this one has {size / 2**30:.1f}\n  use device='cpu'")
    return embed_weights(model, weights)
