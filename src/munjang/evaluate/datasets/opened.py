"""A data file, plain or gzip, → its text, whole, within a bound. For formats that cannot be read line by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from munjang.errors import InputError
from munjang.limits import LIMITS


def whole_text(path: str | Path, *, limit: int = LIMITS.max_dataset_bytes) -> str:
    """Return the file's text as UTF-8, a byte order mark removed, and refuse more than `limit` bytes (after decompression)."""
    data = first_bytes(path, limit + 1)
    if len(data) > limit:
        raise InputError(f"{Path(path).name}: more than {limit:,} bytes, which is the limit\n  split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{Path(path).name}: byte {error.start:,} is not UTF-8\n  convert the file to UTF-8") from None


def first_bytes(path: str | Path, count: int) -> bytes:
    """Return up to `count` bytes of the decompressed file."""
    file = Path(path)
    try:
        with file.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            return gzip.GzipFile(fileobj=raw).read(count) if zipped else raw.read(count)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{file}: a folder, expected a file") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{file.name}: broken gzip data ({error})\n  fetch the file again") from None


def whole_json(path: str | Path) -> Any:
    """Return the file's JSON value."""
    try:
        return json.loads(whole_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{Path(path).name} line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{Path(path).name}: JSON nested too deeply") from None


def file_kind(path: str | Path) -> str:
    """Return the ending that says how a file is written, without .gz: "csv", "tsv", "txt", "json", "jsonl", "parquet".

    >>> file_kind("sts-dev.tsv.gz")
    'tsv'
    """
    endings = [ending.lstrip(".").lower() for ending in Path(path).suffixes]
    if endings and endings[-1] == "gz":
        endings.pop()
    return endings[-1] if endings else ""
