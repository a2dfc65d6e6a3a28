"""Tables of which a run reads a few rows: the embeddings of tokens.

A session would keep a copy of them, a third of what a small model takes and most of what a model of many languages takes. So a graph on the
CPU gets its tokens' rows with every run. They are read from the graph cache, row by row: a mapped file would come into memory in large
pieces. Files of users may be overwritten in place while a model is open, so their tables are copied.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from munjang.errors import FolderError
from munjang.types import Floats, Ints

FED = "fed."
"""How the names of such tables begin."""
SMALLEST_BYTES = 2**22
"""Smaller tables belong to the session."""


class RowTable(Protocol):
    """Rows of float32 by their number."""

    def take(self, ids_T: Ints) -> Floats:
        """Return the rows of these numbers, (T, width)."""
        ...

    def read(self) -> Floats:
        """Return the whole table."""
        ...

    def own(self) -> RowTable:
        """Return a table that does not change with a user's file."""
        ...


@dataclass(frozen=True)
class MemoryTable:
    """A table in memory."""

    rows_VE: Floats

    def take(self, ids_T: Ints) -> Floats:
        """Return the rows of these numbers."""
        _check_ids(ids_T, len(self.rows_VE))
        rows_TE: Floats = self.rows_VE[ids_T]
        return rows_TE

    def read(self) -> Floats:
        """Return the table itself."""
        return self.rows_VE

    def own(self) -> MemoryTable:
        """Copy what stands in a mapped file."""
        return self if self.rows_VE.flags.owndata else MemoryTable(np.array(self.rows_VE))


class FileTable:
    """A table in a file that nobody changes; it stays open with a descriptor of its own."""

    def __init__(self, file: BinaryIO, start: int, shape: tuple[int, int]) -> None:
        self.name, self.start, self.shape = file.name, start, shape
        self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)

    def take(self, ids_T: Ints) -> Floats:
        """Read the rows of these numbers, each once."""
        count, width = self.shape
        _check_ids(ids_T, count)
        chosen_U, places_T = np.unique(ids_T, return_inverse=True)
        row_bytes = 4 * width
        read = b"".join([os.pread(self._file, row_bytes, self.start + number * row_bytes) for number in chosen_U.tolist()])
        if len(read) != row_bytes * len(chosen_U):
            raise FolderError(f"{self.name}: ends before one of its {count:,} rows; the cache was changed while it was open")
        rows_UE = np.frombuffer(read, np.float32).reshape(-1, width)
        rows_TE: Floats = rows_UE[places_T]
        return rows_TE

    def read(self) -> Floats:
        """Read all rows."""
        return self.take(np.arange(self.shape[0]))

    def own(self) -> FileTable:
        """Return this: the file is the cache's."""
        return self


def _check_ids(ids_T: Ints, count: int) -> None:
    if len(ids_T) and not 0 <= int(ids_T.min()) <= int(ids_T.max()) < count:
        raise IndexError(f"token ids from {ids_T.min()} to {ids_T.max()}, expected 0 to {count - 1}")
