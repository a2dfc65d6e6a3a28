"""A safetensors file (or several, with an index) → named arrays, checked before they are trusted.

The file is mapped, not read: a tensor costs memory when it is taken. Every declared size is checked against the file before anything is
allocated. float16 and bfloat16 come out as float32. Pickle formats (`pytorch_model.bin`, `.pt`, `.ckpt`) are never opened.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from munjang.engine.jsonfile import is_file_name, read_object
from munjang.errors import FolderError, quote
from munjang.limits import LIMITS, Limits
from munjang.types import Floats

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth", "model.ckpt", "tf_model.h5", "flax_model.msgpack")

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}

RELEASE_BYTES = 1 << 25
"""So much of mapped files stays in memory while tensors are read one after the other."""
MAX_DIMENSIONS = 8
"""More would make a shape's product a long computation."""


@dataclass(frozen=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Weights(Mapping[str, Floats]):
    """The tensors of a model, read when asked for, float32 and finite."""

    def __init__(self, files: Iterable[Path], *, limits: Limits = LIMITS) -> None:
        self.files = tuple(files)
        self._maps: dict[str, tuple[Path, mmap.mmap, _Entry]] = {}
        self._read_bytes = 0
        for path in self.files:
            mapped, entries = _open(path, limits)
            for name, entry in entries.items():
                self._maps[name] = (path, mapped, entry)

    def __getitem__(self, name: str) -> Floats:
        path, mapped, entry = self._maps[name]
        raw = np.frombuffer(mapped, dtype=_DTYPES[entry.dtype], count=prod(entry.shape), offset=entry.start).reshape(entry.shape)
        array = _to_float32(raw, entry.dtype)
        if array.dtype == np.float32 and not np.isfinite(array).all():
            raise FolderError(f"{path}: tensor {quote(name)} holds NaN or infinite values; the weights are damaged")
        self._read_bytes += raw.nbytes
        if self._read_bytes > RELEASE_BYTES:
            self.release()
        return array

    def release(self) -> None:
        """Give back the memory of what has been read of the files; what is read again comes from the disk's cache."""
        self._read_bytes = 0
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in {id(mapped): mapped for _, mapped, _ in self._maps.values()}.values():
                mapped.madvise(mmap.MADV_DONTNEED)

    def floats(self, name: str) -> Floats:
        """Return a tensor that must hold floating-point numbers."""
        array = self[name]
        if array.dtype != np.float32:
            path, _, entry = self._maps[name]
            raise FolderError(f"{path}: tensor {quote(name)} holds {entry.dtype}, expected floating-point numbers")
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)

    def alias(self, name: str, stored: str) -> None:
        """Let the tensor `stored` be found under another name too."""
        self._maps.setdefault(name, self._maps[stored])

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape without reading it."""
        return self._maps[name][2].shape

    def dtype(self, name: str) -> str:
        """Return how the file keeps a tensor's numbers, such as "F16"."""
        return self._maps[name][2].dtype

    def bytes(self) -> int:
        """Return the size of the weights on disk."""
        return sum(path.stat().st_size for path in self.files)


def find_weights(folder: Path, *, limits: Limits = LIMITS) -> Weights:
    """Open the weights of one module's folder."""
    if (folder / SINGLE).is_file():
        return Weights([folder / SINGLE], limits=limits)
    if (folder / INDEX).is_file():
        return Weights(_list_shards(folder), limits=limits)
    for name in PICKLES:
        if (folder / name).exists():
            raise FolderError(
                f"{folder / name}: weights in a format that can run code on loading are not opened; expected {SINGLE}\n"
                "  save the model again as safetensors (transformers: save_pretrained) on a machine where you trust the file"
            )
    raise FolderError(f"{folder}: no {SINGLE} found\n  give a folder that holds a saved model")


def _list_shards(folder: Path) -> list[Path]:
    table = read_object(folder / INDEX).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise FolderError(f"{folder / INDEX}: 'weight_map' is missing or not a table of names")
    names = sorted(set(table.values()))
    for name in names:  # a plain name, not a resolved path: the hub's cache keeps its files as links to elsewhere
        if Path(name).name != name or not name.endswith(".safetensors") or not is_file_name(name) or not (folder / name).is_file():
            raise FolderError(f"{folder / INDEX}: names {quote(name)}, which is not a safetensors file of this folder")
    return [folder / name for name in names]


def _open(path: Path, limits: Limits) -> tuple[mmap.mmap, dict[str, _Entry]]:
    try:
        size = path.stat().st_size
        if size < 8:
            raise FolderError(f"{path}: {size} bytes, too short for a safetensors file")
        if size > limits.max_weights_bytes:
            raise FolderError(f"{path}: {size:,} bytes, the limit is {limits.max_weights_bytes:,}")
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    header_bytes = int.from_bytes(mapped[:8], "little")
    if header_bytes > limits.max_weights_header_bytes or 8 + header_bytes > size:
        raise FolderError(f"{path}: the header says it is {header_bytes:,} bytes, the file has {size:,}; truncated or not safetensors")
    try:
        header = json.loads(mapped[8 : 8 + header_bytes].decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise FolderError(f"{path}: the header is not JSON; damaged or not safetensors") from None
    if not isinstance(header, dict):
        raise FolderError(f"{path}: the header is not a JSON object; damaged or not safetensors")
    return mapped, _read_entries(path, header, data_start=8 + header_bytes, size=size)


def _read_entries(path: Path, header: dict[str, Any], *, data_start: int, size: int) -> dict[str, _Entry]:
    entries = {name: _read_entry(path, name, value, data_start) for name, value in header.items() if name != "__metadata__"}
    end = data_start
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start < end or entry.stop > size:
            raise FolderError(
                f"{path}: tensor {quote(name)} overlaps another or ends past the file ({entry.stop:,} of {size:,} bytes); truncated?"
            )
        end = entry.stop
    spare = size - data_start - sum(entry.stop - entry.start for entry in entries.values())
    if spare:
        raise FolderError(f"{path}: {spare:,} bytes belong to no tensor; damaged, or a file of another format too")
    return entries


def _read_entry(path: Path, name: str, value: Any, data_start: int) -> _Entry:
    try:
        dtype, shape, (start, stop) = str(value["dtype"]), tuple(value["shape"]), value["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise FolderError(f"{path}: the header's entry for {quote(name)} is malformed") from None
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in (*shape, start, stop))
    if dtype not in _DTYPES:
        raise FolderError(f"{path}: tensor {quote(name)} has dtype {quote(dtype)}, expected one of {', '.join(_DTYPES)}")
    itemsize = _DTYPES[dtype].itemsize
    possible = whole and len(shape) <= MAX_DIMENSIONS and prod(n or 1 for n in shape) * itemsize <= LIMITS.max_weights_bytes
    if not possible or prod(shape) * itemsize != stop - start:
        raise FolderError(f"{path}: tensor {quote(name)} declares a shape that does not fit its bytes")
    return _Entry(dtype, shape, data_start + start, data_start + stop)


def _to_float32(raw: np.ndarray[Any, Any], dtype: str) -> Floats:
    if dtype == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if raw.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as that
            return raw.astype(np.float32, copy=False)
    return raw
