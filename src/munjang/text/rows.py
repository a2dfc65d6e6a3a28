"""The nouns of reading: a row, how a file is laid out, and the bad lines that were skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from munjang.errors import InputError
from munjang.wording import brief_repr

Format: TypeAlias = Literal["txt", "csv", "tsv", "jsonl", "json", "parquet"]


class ByteStream(Protocol):
    """What the readers read from: a file, a gzip file or standard input."""

    def read(self, size: int = ..., /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...

    def readline(self, size: int = ..., /) -> bytes:
        """Return one line, or its first `size` bytes."""
        ...


@brief_repr
@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: its values by column, and where it stood."""

    source: str
    line: int
    """The physical line on which the row starts, from 1; in Parquet and JSON files the row's or line's number."""
    values: dict[str, Any]

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return place(self.source, self.line)


@dataclass(frozen=True)
class Layout:
    """How the rows of a file are written. What is None follows from the format."""

    format: Format
    quoting: bool
    header: bool | None
    """None: guess from the first line."""
    delimiter: str
    columns: tuple[str, ...] | None
    encoding: str


@dataclass
class BadLines:
    """Counts the lines that were skipped because they are broken, and keeps the first few messages."""

    keep: int = 5
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, error: InputError) -> None:
        """Count one broken line."""
        self.count += 1
        if len(self.first) < self.keep:
            message = str(error)
            self.first.append(message if message.startswith(where) else f"{where}: {message}")


Reject: TypeAlias = Callable[[int, InputError], None]
"""What a reader calls for a broken line: it raises, or counts the line so that the reader goes on with the next."""


def place(source: str, line: int) -> str:
    """Name a line of a file.

    >>> place("news.jsonl", 18)
    'news.jsonl line 18'
    """
    return f"{source} line {line}"
