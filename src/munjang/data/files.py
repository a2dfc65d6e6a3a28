"""A data file, plain or gzip, → its text, whole, within a bound, for formats that cannot be read line by line; and rows → a data file."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from munjang.atomic import atomic_file
from munjang.errors import InputError, UsageError
from munjang.limits import LIMITS

FORMATS = (".csv", ".tsv", ".jsonl")
"""What `write_rows` writes."""


def read_text(path: str | Path, *, limit: int = LIMITS.max_dataset_bytes) -> str:
    """Return the file's text as UTF-8, a byte order mark removed, and refuse more than `limit` bytes (after decompression)."""
    data = read_first_bytes(path, limit + 1)
    if len(data) > limit:
        raise InputError(f"{Path(path).name}: more than {limit:,} bytes, which is the limit\n  split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{Path(path).name}: byte {error.start:,} is not UTF-8\n  convert the file to UTF-8") from None


def read_first_bytes(path: str | Path, count: int) -> bytes:
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


def read_json(path: str | Path) -> Any:
    """Return the file's JSON value."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{Path(path).name} line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{Path(path).name}: JSON nested too deeply") from None


def get_file_kind(path: str | Path) -> str:
    """Return the ending that says how a file is written, without .gz: "csv", "tsv", "txt", "json", "jsonl", "parquet".

    >>> get_file_kind("sts-dev.tsv.gz")
    'tsv'
    """
    endings = [ending.lstrip(".").lower() for ending in Path(path).suffixes]
    if endings and endings[-1] == "gz":
        endings.pop()
    return endings[-1] if endings else ""


def check_format(path: Path) -> None:
    """Refuse a file whose suffix is no format that `write_rows` writes."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{path.name}: no known format, expected {', '.join(FORMATS)}")


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> int:
    """Write rows as CSV, TSV or JSON Lines by the file's suffix, whole or not at all; return how many."""
    check_format(path)
    count = 0
    with atomic_file(path) as handle:
        stream = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        table = csv.writer(stream)
        if path.suffix == ".csv":
            table.writerow(header)
        elif path.suffix == ".tsv":
            stream.write("\t".join(header) + "\n")
        for row in rows:
            count += 1
            if path.suffix == ".csv":
                table.writerow(row)
            elif path.suffix == ".tsv":
                # a tab or line break inside a text would make another column or row of it
                stream.write("\t".join(" ".join(str(cell).split()) for cell in row) + "\n")
            else:
                stream.write(json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) + "\n")
        stream.detach()
    return count
