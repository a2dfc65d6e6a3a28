"""What a parser hands over: blocks in the order of reading, each a heading, a paragraph, an item of a list or a row of a table.

Texts of blocks are in NFC, without control characters, with single spaces; code keeps its lines. A row carries its table's headers:
`연료: 장작 · 집의 수: 41`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

BlockKind: TypeAlias = Literal["heading", "paragraph", "item", "row"]
PlaceKind: TypeAlias = Literal["page", "slide", "sheet"]

LONGEST_HEADING = 150
"""Characters; what is longer is a paragraph, whatever its style says."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]|[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileBlock:
    """One piece of a file."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading, from 1."""
    place: str | int | None = None
    """The page or slide, from 1, or the sheet's name."""


@dataclass(frozen=True)
class ParsedFile:
    """All blocks of a file, and what its places are."""

    blocks: tuple[FileBlock, ...]
    place_kind: PlaceKind = "page"
    pages: int = 0
    empty_pages: int = 0
    """Pages of a PDF without a single character."""


def make_block(kind: BlockKind, text: str, *, level: int = 0, place: str | int | None = None, keep_lines: bool = False) -> FileBlock | None:
    """Return a block with a tidy text, or None if nothing is left of it."""
    tidy = _CONTROL.sub("", unicodedata.normalize("NFC", text.replace("\u00a0", " ").replace("\u200b", "")))
    tidy = "\n".join(line.rstrip() for line in tidy.splitlines()).strip("\n") if keep_lines else " ".join(tidy.split())
    if not tidy.strip():
        return None
    if kind == "heading" and len(tidy) > LONGEST_HEADING:
        kind, level = "paragraph", 0
    return FileBlock(kind, tidy, level if kind == "heading" else 0, place)


def make_rows(table: Sequence[Sequence[str]], *, place: str | int | None = None) -> Iterator[FileBlock]:
    """Yield a block for each row below the first, whose cells are the headers; a table of one row is that row.

    >>> [block.text for block in make_rows([["연료", "수"], ["장작", "41"], ["기름", ""]])]
    ['연료: 장작 · 수: 41', '연료: 기름']
    """
    rows = [[" ".join(cell.split()) for cell in row] for row in table]
    rows = [row for row in rows if any(row)]
    if len(rows) == 1:
        rows = [[""] * len(rows[0]), rows[0]]
    for row in rows[1:]:
        headers = [*rows[0], *[""] * (len(row) - len(rows[0]))]
        cells = [f"{header}: {cell}" if header else cell for header, cell in zip(headers, row, strict=False) if cell]
        block = make_block("row", " · ".join(cells), place=place)
        if block is not None:
            yield block
