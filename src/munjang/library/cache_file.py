"""A cache on disk: a header that says what it belongs to, some arrays, and a checksum over every byte.

A cache is never the truth: whoever reads one gets arrays that are exactly what was written for this very store, or nothing. It is written
under a temporary name and renamed, so a killed writer leaves nothing that could be read; what it leaves goes with a later write.

    4,096 bytes   "MUNJANG CACHE 1\\n", JSON, spaces, and in the last 4 bytes the CRC-32 of the rest of the header
    arrays        one after the other, each beginning at a multiple of 64
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterable, Mapping
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.atomic import remove_abandoned

HEADER_BYTES = 4_096
_MAGIC = b"MUNJANG CACHE 1\n"
_ALIGNED = 64
_STEP = 1 << 24  # bytes that are summed or written at once


def write_cache(path: Path, belongs_to: Mapping[str, str | int], arrays: Mapping[str, Iterable[NDArray[Any]]]) -> None:
    """Write arrays, each as parts that follow one another along their first axis; raise OSError when the disk does not take them."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with draft.open("wb") as stream:
            stream.write(bytes(HEADER_BYTES))
            remove_abandoned(draft, f".{escape(path.name)}-*")
            listed, checksum = {}, 0
            for name, parts in arrays.items():
                at, rows, last = stream.tell(), 0, None
                for part in parts:
                    raw = np.ascontiguousarray(part)
                    checksum = zlib.crc32(raw.data, checksum)
                    stream.write(raw.data)
                    rows, last = rows + len(part), raw
                padding = bytes(-stream.tell() % _ALIGNED)
                checksum = zlib.crc32(padding, checksum)
                stream.write(padding)
                if last is not None:
                    listed[name] = {"at": at, "shape": [rows, *last.shape[1:]], "dtype": last.dtype.str}
            facts = {"belongs_to": dict(belongs_to), "arrays": listed, "checksum": checksum, "bytes": stream.tell()}
            stream.seek(0)
            stream.write(_header(facts))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_cache(path: Path, belongs_to: Mapping[str, str | int]) -> dict[str, NDArray[Any]] | None:
    """Return the arrays, mapped and read-only, or None when the file is missing, damaged, or belongs to something else."""
    try:
        with path.open("rb") as stream:
            facts = _facts(stream.read(HEADER_BYTES))
            if facts is None or facts["belongs_to"] != dict(belongs_to) or facts["bytes"] != os.fstat(stream.fileno()).st_size:
                return None
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    with memoryview(mapped) as whole:
        if _checksum(whole) != facts["checksum"]:
            return None
    return {name: _array(mapped, **about) for name, about in facts["arrays"].items()}


def _header(facts: Mapping[str, Any]) -> bytes:
    head = (_MAGIC + json.dumps(facts).encode()).ljust(HEADER_BYTES - 4)
    if len(head) != HEADER_BYTES - 4:
        raise ValueError("a cache's header does not fit")
    return head + zlib.crc32(head).to_bytes(4, "little")


def _facts(header: bytes) -> dict[str, Any] | None:
    head, checksum = header[:-4], header[-4:]
    if len(header) != HEADER_BYTES or not head.startswith(_MAGIC) or zlib.crc32(head).to_bytes(4, "little") != checksum:
        return None
    facts: dict[str, Any] = json.loads(head[len(_MAGIC) :])
    return facts


def _checksum(whole: memoryview) -> int:
    checksum = 0
    for at in range(HEADER_BYTES, len(whole), _STEP):
        checksum = zlib.crc32(whole[at : at + _STEP], checksum)
    return checksum


def _array(mapped: mmap.mmap, at: int, shape: list[int], dtype: str) -> NDArray[Any]:
    count = int(np.prod(shape))
    return np.frombuffer(mapped, dtype=dtype, count=count, offset=at).reshape(shape)
