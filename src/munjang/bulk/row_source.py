"""What a stream over a collection of vectors reads: the folder of a finished bulk job, or a .npy file.

Both give the same rows in the same order as often as they are asked, a block at a time, so that nothing needs to be held.

Shapes: N rows of a block, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from munjang.bulk.output import BulkOutput, is_output, open_output
from munjang.bulk.shard_files import Block
from munjang.errors import InputError, UsageError, quote
from munjang.types import Vectors
from munjang.vectors.quantize import dequantize

BLOCK = 16_384
"""Rows of a .npy file that are read at once."""
_BITS = ("binary", "ubinary")


class RowSource(Protocol):
    """Rows of vectors with ids, and texts if they were kept."""

    @property
    def place(self) -> str:
        """Where they are."""
        ...

    @property
    def rows(self) -> int:
        """How many there are."""
        ...

    @property
    def identity(self) -> str:
        """Changes when the rows do."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order."""
        ...


@dataclass(frozen=True, eq=False)
class OutputRows:
    """The rows of a finished bulk job."""

    output: BulkOutput

    @property
    def place(self) -> str:
        """Where they are."""
        return self.output.storage.place

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.output.rows

    @property
    def identity(self) -> str:
        """A hash of the checksums of all files."""
        return hashlib.sha256("".join(file.sha256 for receipt in self.output.receipts for file in receipt.files).encode()).hexdigest()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of every shard that has some."""
        return (block for block in self.output.blocks() if block.ids)


@dataclass(frozen=True, eq=False)
class NpyRows:
    """The rows of a .npy file; their ids are their numbers, from 1."""

    path: Path
    vectors_ND: NDArray[Any]

    @property
    def place(self) -> str:
        """Where they are."""
        return str(self.path)

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.vectors_ND)

    @property
    def identity(self) -> str:
        """The file's name, size and time of change."""
        about = self.path.stat()
        return hashlib.sha256(f"{self.path.absolute()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in blocks; each maps the file anew, so that what was read does not stay in memory."""
        for start in range(0, self.rows, BLOCK):
            part = np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[start : start + BLOCK])
            yield Block([str(number) for number in range(start + 1, start + len(part) + 1)], part, None)


def open_rows(place: str | Path) -> RowSource:
    """Open the folder of a finished bulk job, or a .npy file; vectors of one bit a dimension are refused."""
    place = str(place)
    if place.lower().endswith(".npy"):
        return NpyRows(Path(place), _map_file(Path(place)))
    if not is_output(place):
        raise InputError(f"{place}: is neither the folder of a finished `munjang bulk` nor a .npy file")
    output = open_output(place)
    if output.job.settings.precision in _BITS:
        raise UsageError(f"{place}: holds {output.job.settings.precision} vectors, expected float32, float16, int8 or uint8")
    return OutputRows(output)


def to_floats(vectors_ND: NDArray[Any]) -> Vectors:
    """Return rows as float32, from whatever a folder or file holds."""
    if vectors_ND.dtype == np.float32:
        return vectors_ND
    return vectors_ND.astype(np.float32) if vectors_ND.dtype.kind == "f" else dequantize(vectors_ND)


def _map_file(path: Path) -> NDArray[Any]:
    try:
        vectors_ND: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: is no .npy file of numbers ({quote(str(error))})\n  write one with munjang encode -o") from None
    if vectors_ND.ndim != 2 or vectors_ND.dtype not in (np.float16, np.float32, np.float64, np.int8, np.uint8):
        raise InputError(f"{path}: holds {vectors_ND.dtype} of shape {vectors_ND.shape}, expected rows of float16, float32, int8 or uint8")
    return vectors_ND
