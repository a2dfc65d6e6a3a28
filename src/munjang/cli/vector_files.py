"""Blocks of vectors → one file on disk, a block at a time: .npy, .parquet or .jsonl.

Memory is bounded by a block, however many rows there are. The file appears whole or not at all (`atomic_file`). Every writer is handed at
least one block, if an empty one, so that a file without rows still says its dimension.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from munjang.atomic import atomic_file
from munjang.errors import MissingExtra, UsageError
from munjang.text.records import Record
from munjang.types import Floats


class VectorWriter(Protocol):
    """Takes blocks of records with their vectors, in order."""

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Write one block."""
        ...

    def close(self) -> None:
        """Write what belongs at the end."""
        ...


@contextmanager
def vector_file(path: Path, *, keep_text: bool = False) -> Iterator[VectorWriter]:
    """Open the writer that the file's suffix asks for."""
    check_suffix(path)
    with atomic_file(path) as handle:
        writer = _WRITERS[path.suffix.lower()](handle, keep_text)
        yield writer
        writer.close()


def check_suffix(path: Path) -> None:
    """Refuse a file that no writer is for, before any work is done."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(_WRITERS)}")


class NpyWriter:
    """An array of numpy's own format; numpy leaves room in the header for the number of rows, which is written last."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        if keep_text:
            raise UsageError("a .npy file holds numbers only\n  choose .parquet or .jsonl to keep the texts")
        self._handle, self._rows, self._row_shape = handle, 0, (0,)
        self._dtype = np.dtype(np.float32)
        self._start = 0

    def write(self, records: Sequence[Record], vectors: Floats) -> None:  # noqa: ARG002 - the protocol's
        """Append rows."""
        if not self._start:
            self._dtype, self._row_shape = vectors.dtype, vectors.shape[1:]
            self._header()
            self._start = self._handle.tell()
        self._handle.write(np.ascontiguousarray(vectors).data if len(vectors) else b"")
        self._rows += len(vectors)

    def close(self) -> None:
        """Write the header again, now with the number of rows."""
        self._handle.seek(0)
        self._header()
        assert self._handle.tell() == self._start  # else the first row would be overwritten

    def _header(self) -> None:
        description = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": description, "fortran_order": False, "shape": (self._rows, *self._row_shape)}
        np.lib.format.write_array_header_1_0(self._handle, header)


class JsonLinesWriter:
    """One JSON object a line: id (if the file has ids), text (if wanted), vector."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        self._handle, self._keep_text = handle, keep_text

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Append lines."""
        for line in json_lines(records, vectors, keep_text=self._keep_text):
            self._handle.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def close(self) -> None:
        """Nothing is left to write."""


def json_lines(records: Sequence[Record], vectors: Floats, *, keep_text: bool) -> Iterator[str]:
    """Yield one JSON object per vector."""
    for record, vector in zip(records, vectors, strict=True):
        row: dict[str, Any] = {} if record.id is None else {"id": record.id}
        if keep_text:
            row["text"] = record.text
        row["vector"] = vector.tolist()
        yield json.dumps(row, ensure_ascii=False, allow_nan=False)


class ParquetWriter:
    """A table with the columns id (the row's number where the file has none), text (if wanted) and vector, a list of fixed size."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtra("writing Parquet", "parquet") from error
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self._handle, self._keep_text = handle, keep_text
        self._writer: Any = None
        self._rows = 0

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Append rows."""
        arrow = self._arrow
        numbers = arrow.array(np.ascontiguousarray(vectors).reshape(-1))
        ids = [str(self._rows + place) if record.id is None else record.id for place, record in enumerate(records)]
        columns = {"id": arrow.array(ids, arrow.string())}
        if self._keep_text:
            columns["text"] = arrow.array([record.text for record in records], arrow.string())
        columns["vector"] = arrow.FixedSizeListArray.from_arrays(numbers, vectors.shape[1])
        table = arrow.table(columns)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._handle, table.schema)
        self._writer.write_table(table)
        self._rows += len(records)

    def close(self) -> None:
        """Write the table of contents."""
        self._writer.close()


_WRITERS: dict[str, Callable[[BinaryIO, bool], VectorWriter]] = {".npy": NpyWriter, ".parquet": ParquetWriter, ".jsonl": JsonLinesWriter}
