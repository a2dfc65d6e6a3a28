"""Finished graphs kept on disk, so that an int8 model need not be quantised again at every start.

Key: the SHA-256 of the weights, the configuration and this writer's version, so a stale entry is never found. One file per entry, written
under a temporary name, synced and renamed; it ends with its own SHA-256, and an entry that does not check is ignored and written anew.
Nothing here is ever required: without a place to write to, models load as well, a little slower. float32 graphs are not kept: building one
is as fast as reading it back.

Layout of an entry: safetensors (the graph as bytes under `__graph__`, its facts under `__facts__`, the weights by name), then 32 bytes of
SHA-256 over all before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from munjang.limits import LIMITS

WRITER = "1"
"""Raise it when a graph is written differently."""

GRAPH = "__graph__"
FACTS = "__facts__"
DIGEST_BYTES = 32
SUFFIX = ".graph"

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class CachedGraph:
    """A graph, the weights that go with it, and what its reader must know about the model."""

    model: bytes
    weights: Arrays
    facts: Mapping[str, int] = field(default_factory=dict)


def cache_home() -> Path:
    """Return the directory where finished graphs are kept."""
    return Path(os.environ.get("MUNJANG_HOME") or Path.home() / ".munjang") / "cache"


def cache_key(*parts: str) -> str:
    """Return the name of an entry."""
    return hashlib.sha256("\0".join((WRITER, *parts)).encode()).hexdigest()[:40]


def load_graph(key: str, *, home: Path | None = None) -> CachedGraph | None:
    """Return the entry, or None if there is none or it is damaged."""
    path = (home or cache_home()) / (key + SUFFIX)
    try:
        if not DIGEST_BYTES < path.stat().st_size <= LIMITS.max_weights_bytes:
            return None
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                body, digest = view[:-DIGEST_BYTES], bytes(view[-DIGEST_BYTES:])
                if hashlib.sha256(body).digest() != digest:
                    return None
                arrays = load(bytes(body))
            finally:
                body.release()
                view.release()
        model, facts = arrays.pop(GRAPH).tobytes(), json.loads(arrays.pop(FACTS).tobytes())
        return CachedGraph(model, arrays, facts)
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def store_graph(key: str, graph: CachedGraph, *, home: Path | None = None) -> bool:
    """Keep an entry; say whether it could be kept."""
    folder = home or cache_home()
    temporary = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        facts = np.frombuffer(json.dumps(dict(graph.facts)).encode(), np.uint8)
        body = save({**graph.weights, GRAPH: np.frombuffer(graph.model, np.uint8), FACTS: facts})
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=SUFFIX, dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.write(hashlib.sha256(body).digest())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(folder / (key + SUFFIX))
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        return False
    return True
