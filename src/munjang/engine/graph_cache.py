"""Finished graphs with their weights, kept in files: never required, never trusted when damaged, never half written.

A file is a safetensors file with its SHA-256 behind it. Its weights are mapped and not read, so that a session takes them from the disk's
cache, and a large model does not stand in memory twice.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from munjang.atomic import atomic_file
from munjang.engine.remembered import find_cache_home as find_cache_home
from munjang.engine.remembered import remember
from munjang.engine.row_table import FED, FileTable, MemoryTable, RowTable
from munjang.engine.session import CachedGraph, NamedArrays, keep_releasing
from munjang.errors import NoSpace
from munjang.limits import LIMITS

WRITER = "4"
"""Raise it when a graph is written differently."""
GRAPH = "__graph__"
FACTS = "__facts__"
SUFFIX = ".graph"
DIGEST_BYTES = 32
LENGTH_BYTES = 8
PIECE_BYTES = 1 << 20
DTYPES: Mapping[str, str] = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1", "U8": "|u1"}
"""safetensors' names of what graphs hold."""


def make_cache_key(*parts: str) -> str:
    """Return the name of an entry."""
    return hashlib.sha256("\0".join((WRITER, *parts)).encode()).hexdigest()[:40]


def keep_graph(key: str, write: Callable[[], CachedGraph], *, home: Path | None = None) -> CachedGraph:
    """Return the entry; where there is none, write the graph, and keep it if that is possible."""
    found = load_graph(key, home=home)
    if found is None:
        graph = write()
        with keep_releasing(graph.release):
            kept = store_graph(key, graph, home=home)
        if not kept:
            return graph
        found = load_graph(key, home=home) or graph  # mapped, which takes less memory than what was written
    return found


def load_graph(key: str, *, home: Path | None = None) -> CachedGraph | None:
    """Return the entry, or None if there is none or it is damaged."""
    path = (home or find_cache_home()) / (key + SUFFIX)
    try:
        if not DIGEST_BYTES < path.stat().st_size <= LIMITS.max_weights_bytes:
            return None
        if remember("is whole", [path], lambda: "whole" if _is_whole(path) else None, home=home) is None:
            return None
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            arrays = _read_arrays(mapped)
            tables = {name: _open_table(file, mapped, arrays.pop(name)) for name in list(arrays) if name.startswith(FED)}
        model, facts = arrays.pop(GRAPH).tobytes(), json.loads(arrays.pop(FACTS).tobytes())
        release = (lambda: mapped.madvise(mmap.MADV_DONTNEED)) if hasattr(mmap, "MADV_DONTNEED") else None
        return CachedGraph(model, arrays, facts, release, tables)
    except (OSError, KeyError, ValueError):
        return None


def store_graph(key: str, graph: CachedGraph, *, home: Path | None = None) -> bool:
    """Keep an entry; say whether it could be kept."""
    folder = home or find_cache_home()
    facts = np.frombuffer(json.dumps(dict(graph.facts)).encode(), np.uint8)
    arrays = {
        **graph.weights,
        **{name: table.read() for name, table in graph.tables.items()},
        GRAPH: np.frombuffer(graph.model, np.uint8),
        FACTS: facts,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / (key + SUFFIX)) as file:
            digest = hashlib.sha256()
            for piece in _list_pieces(arrays):
                digest.update(piece)
                file.write(piece)
            file.write(digest.digest())
    except (OSError, NoSpace):
        return False
    return True


def _is_whole(path: Path) -> bool:
    """Say whether the last bytes are the digest of all before them."""
    digest, held = hashlib.sha256(), b""
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            held += piece
            digest.update(held[:-DIGEST_BYTES])
            held = held[-DIGEST_BYTES:]
    return digest.digest() == held


def _read_arrays(mapped: mmap.mmap) -> dict[str, np.ndarray[Any, Any]]:
    begin = LENGTH_BYTES + int.from_bytes(mapped[:LENGTH_BYTES], "little")
    header = json.loads(mapped[LENGTH_BYTES:begin])
    return {
        name: np.frombuffer(mapped, DTYPES[entry["dtype"]], prod(entry["shape"]), begin + entry["data_offsets"][0]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def _open_table(file: BinaryIO, mapped: mmap.mmap, rows_VE: np.ndarray[Any, Any]) -> RowTable:
    """Return a table that stands in the file; without `pread`, on Windows, it is read through the mapping."""
    if not hasattr(os, "pread"):
        return MemoryTable(rows_VE)
    begin = rows_VE.__array_interface__["data"][0] - np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
    return FileTable(file, begin, (rows_VE.shape[0], rows_VE.shape[1]))


def _list_pieces(arrays: NamedArrays) -> list[Any]:
    """Return what stands in the file: the header's length, the header, every array."""
    names = {np.dtype(code).str: name for name, code in DTYPES.items()}
    ordered = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)  # the widest first, so that each is aligned
    header, at = {}, 0
    for name in ordered:
        array = arrays[name]
        header[name] = {"dtype": names[array.dtype.str], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    bodies = [np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data for name in ordered if arrays[name].nbytes]
    return [len(text).to_bytes(LENGTH_BYTES, "little"), text, *bodies]
