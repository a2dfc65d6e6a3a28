"""What a parser of HTML or XML meets, in its order → blocks.

A parser says which elements open and close paragraphs, headings, items, tables, rows and cells, and hands over the text between; a
`BlockWriter` makes blocks of it. A table becomes rows with their headers; one of a single column, and one that only lays out a page (its
text stands in further tables, or under headings), is what stands in its cells. A block within a block, such as a text box or a footnote
in a paragraph, comes behind it, so that the sentence around it stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from munjang.documents.blocks import BlockKind, FileBlock, make_block
from munjang.documents.tables import TableCell, make_rows


@dataclass
class _OpenBlock:
    kind: BlockKind
    level: int = 0
    keeps_lines: bool = False
    parts: list[str] = field(default_factory=list)
    inner: list[FileBlock] = field(default_factory=list)


@dataclass
class _OpenCell:
    columns: int = 1
    rows: int = 1
    is_header: bool = False
    blocks: list[FileBlock] = field(default_factory=list)
    open: list[_OpenBlock] = field(default_factory=list)


@dataclass
class _OpenTable:
    rows: list[list[_OpenCell]] = field(default_factory=list)
    is_in_row: bool = False
    cell: _OpenCell | None = None


class BlockWriter:
    """Makes blocks; `flows` is for formats in which a block within a block ends the text before it, as in HTML."""

    def __init__(self, *, flows: bool = False) -> None:
        self.place: str | int | None = None
        self._flows = flows
        self._page = _OpenCell()  # what stands in no table
        self._tables: list[_OpenTable] = []

    def finish(self) -> tuple[FileBlock, ...]:
        """Close what is open and return all blocks."""
        while self._tables:
            self.close_table()
        self._close_blocks()
        return tuple(self._page.blocks)

    def open_block(self, kind: BlockKind, *, level: int = 0, keeps_lines: bool = False) -> None:
        """Begin a block; a paragraph within an item or a heading is part of it."""
        if self._flows:
            self._flush()
        outer = self._sink.open[-1] if self._sink.open else None
        if kind == "paragraph" and outer is not None and outer.kind != "paragraph":
            kind, level, keeps_lines = outer.kind, outer.level, outer.keeps_lines
        self._sink.open.append(_OpenBlock(kind, level, keeps_lines))

    def change_block(self, kind: BlockKind, *, level: int = 0) -> None:
        """Say what the innermost block is, which some formats tell inside of it."""
        if self._sink.open:
            block = self._sink.open[-1]
            block.kind, block.level = kind, level

    def make_item(self) -> None:
        """Say that the innermost block, if it is a paragraph, is an item of a list."""
        if self._sink.open and self._sink.open[-1].kind == "paragraph":
            self._sink.open[-1].kind = "item"

    def close_block(self) -> None:
        """End the innermost block."""
        if self._flows:
            self._flush()
        if not self._sink.open:
            return
        block = self._sink.open.pop()
        own = make_block(block.kind, "".join(block.parts), level=block.level, place=self.place, keep_lines=block.keeps_lines)
        made = [*([own] if own is not None else []), *block.inner]
        (self._sink.open[-1].inner if self._sink.open else self._sink.blocks).extend(made)

    def add(self, text: str) -> None:
        """Add text to the innermost block."""
        if not self._sink.open:
            if not text.strip():
                return
            self._sink.open.append(_OpenBlock("paragraph"))
        self._sink.open[-1].parts.append(text)

    def add_blocks(self, blocks: Iterable[FileBlock]) -> None:
        """Add blocks that others made."""
        self._close_blocks()
        self._sink.blocks.extend(blocks)

    def open_table(self) -> None:
        """Begin a table."""
        self._flush()
        self._tables.append(_OpenTable())

    def open_row(self) -> None:
        """Begin a row, and end the one before."""
        if self._tables:
            self._close_cell()
            self._tables[-1].rows.append([])
            self._tables[-1].is_in_row = True

    def open_cell(self, *, columns: int = 1, rows: int = 1, is_header: bool = False) -> None:
        """Begin a cell, and end the one before."""
        if not self._tables:
            return
        self._close_cell()
        if not self._tables[-1].is_in_row:
            self.open_row()
        self._tables[-1].cell = _OpenCell(columns, rows, is_header)

    def change_cell(self, *, columns: int | None = None, rows: int | None = None) -> None:
        """Say how far the open cell reaches, which some formats tell inside of it."""
        if self._tables and (cell := self._tables[-1].cell) is not None:
            cell.columns, cell.rows = columns or cell.columns, cell.rows if rows is None else rows

    def close_row(self) -> None:
        """End the open row."""
        if self._tables:
            self._close_cell()
            self._tables[-1].is_in_row = False

    def close_table(self) -> None:
        """End the innermost table."""
        if not self._tables:
            return
        self._close_cell()
        table = self._tables.pop()
        blocks = self._make_table(table)
        (self._sink.open[-1].inner if self._sink.open and not self._flows else self._sink.blocks).extend(blocks)

    @property
    def _sink(self) -> _OpenCell:
        """Where text goes: the innermost open cell, else the page."""
        return next((table.cell for table in reversed(self._tables) if table.cell is not None), self._page)

    def _make_table(self, table: _OpenTable) -> list[FileBlock]:
        cells = [cell for row in table.rows for cell in row]
        inner = [block for cell in cells for block in cell.blocks]
        rows = sum(len(block.text) for block in inner if block.kind == "row") if self._flows else 0
        is_layout = any(block.kind == "heading" for block in inner) or 2 * rows > sum(len(block.text) for block in inner)
        if is_layout or max(map(len, table.rows), default=0) <= 1:
            return inner
        squares = [[TableCell(_text(cell), cell.columns, cell.rows, cell.is_header) for cell in row] for row in table.rows]
        return list(make_rows(squares, place=self.place))

    def _close_cell(self) -> None:
        table = self._tables[-1]
        if table.cell is not None:
            self._close_blocks()
            table.rows[-1].append(table.cell)
            table.cell = None

    def _close_blocks(self) -> None:
        while self._sink.open:
            self.close_block()

    def _flush(self) -> None:
        """In formats that flow, make a block of what was written so far."""
        if not self._flows or not self._sink.open:
            return
        block = self._sink.open[-1]
        made = make_block(block.kind, "".join(block.parts), level=block.level, place=self.place, keep_lines=block.keeps_lines)
        block.parts.clear()
        if made is not None:
            self._sink.blocks.append(made)


def _text(cell: _OpenCell) -> str:
    return " ".join(block.text for block in cell.blocks)
