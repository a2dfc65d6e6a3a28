"""A teacher's vectors of many texts, computed once: blocks of rows on disk, memory-mapped.

In: an Encoder and unique texts. Out: `VectorBlocks`, which read like one array and hold nothing in memory. Each block is a .npy file named
by the teacher's fingerprint and its texts, with its checksum beside it; it appears whole or not at all. So an interrupted run goes on at
the first block that is missing, a damaged block is computed again, other texts or another teacher never find a wrong file, and files added
at the end of a list cost only themselves.

Shapes: N rows, D dimensions.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from munjang.atomic import make_folder
from munjang.errors import InputError
from munjang.limits import LIMITS
from munjang.train.durable import clear_partial, hash_file, write_file, write_text
from munjang.types import Encoder, Vectors

SECONDS_BETWEEN_NEWS = 30.0


@dataclass(frozen=True)
class VectorBlocks:
    """Rows of several arrays, all of `size` rows but the last."""

    blocks: tuple[Vectors, ...]
    size: int
    key: str
    """Stands for the teacher and all texts in order."""

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def dimension(self) -> int:
        """How many numbers one row has."""
        return int(self.blocks[0].shape[1])

    def rows(self, at_N: NDArray[np.int64]) -> Vectors:
        """Return copies of some rows, in the order asked for."""
        made_ND = np.empty((len(at_N), self.dimension), np.float32)
        for place, row in enumerate(at_N.tolist()):
            made_ND[place] = self.blocks[row // self.size][row % self.size]
        return made_ND


def encode_with_teacher(
    teacher: Encoder,
    texts: Sequence[str],
    folder: Path,
    *,
    show: Callable[[str], None] = lambda _: None,
    block: int = LIMITS.stream_texts,
    clock: Callable[[], float] = time.monotonic,
) -> VectorBlocks:
    """Return the teacher's vectors of the texts; what is in the folder already and whole is not computed again."""
    if not texts:
        raise InputError("no texts for the teacher to encode")
    make_folder(folder)
    clear_partial(folder)
    parts = [texts[start : start + block] for start in range(0, len(texts), block)]
    keys = [_make_key(teacher.fingerprint, part) for part in parts]
    found = [open_array(folder / f"{key}.npy", (len(part), teacher.dimension)) for key, part in zip(keys, parts, strict=True)]
    missing = [number for number, array in enumerate(found) if array is None]
    total, done, started = sum(len(parts[number]) for number in missing), 0, clock()
    if missing:
        show(f"teacher: encodes {total:,} texts ({len(texts) - total:,} were encoded before)")
    told = started
    for number in missing:
        found[number] = store_array(folder / f"{keys[number]}.npy", partial(_encode_finite, teacher, parts[number]))
        done += len(parts[number])
        if clock() - told > SECONDS_BETWEEN_NEWS and done < total:
            told = clock()
            show(f"teacher: {done:,} of {total:,} texts, {done / (told - started):,.0f} texts/s")
    made = tuple(array for array in found if array is not None)
    return VectorBlocks(made, block, hashlib.sha256(" ".join(keys).encode()).hexdigest())


def open_array(path: Path, shape: tuple[int, ...]) -> Vectors | None:
    """Map a float32 array that `store_array` wrote; None where it is missing, damaged or of another shape."""
    try:
        whole = _get_checksum_path(path).read_text(encoding="ascii").strip() == hash_file(path)
        found = np.load(path, mmap_mode="r", allow_pickle=False) if whole else None
    except (OSError, ValueError):
        return None
    return found if found is not None and found.shape == shape and found.dtype == np.float32 else None


def store_array(path: Path, make: Callable[[], Vectors]) -> Vectors:
    """Write an array with its checksum, each in one step, and return it mapped."""
    array = np.ascontiguousarray(make(), np.float32)

    def fill(draft: Path) -> None:
        with draft.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)

    _get_checksum_path(path).unlink(missing_ok=True)
    write_file(path, fill)
    write_text(_get_checksum_path(path), hash_file(path) + "\n")
    mapped: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def _get_checksum_path(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _make_key(fingerprint: str, texts: Sequence[str]) -> str:
    made = hashlib.sha256(fingerprint.encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


def _encode_finite(teacher: Encoder, texts: Sequence[str]) -> Vectors:
    vectors = teacher.encode(texts)
    if not np.isfinite(vectors).all():
        raise InputError("the teacher gives vectors that are not finite numbers\n  check its folder, or name another teacher")
    return vectors
