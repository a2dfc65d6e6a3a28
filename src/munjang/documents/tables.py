"""Cells of a table → blocks, one for each row, with its headers: `연료: 장작 · 집의 수: 41`.

Headers are the first row, and the rows below it that its merged cells reach into. A short cell that reaches over rows counts in each of
them. Rows before the headers with one text alone are captions. Nothing is lost: a header above empty cells is named once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from munjang.documents.blocks import FileBlock, make_block

MOST_COLUMNS = 1_000
"""Of a row that is looked at; a file may claim any number."""
LONGEST_REPEATED = 60
"""Characters of a cell that counts in every row that it reaches over; a longer one counts in the first."""
MOST_HEADER_ROWS = 3
"""A first cell that reaches further down is no header."""
BETWEEN = " · "


class TableCell(NamedTuple):
    """A cell as a file holds it."""

    text: str
    columns: int = 1
    rows: int = 1
    """How many it reaches over; 0 means that it continues the cell above."""
    is_header: bool = False


class _Square(NamedTuple):
    text: str
    is_header: bool = False
    is_repeated: bool = False
    """Whether a cell reaches in from the left."""
    origin: int = 0
    """The row that the cell began in."""


Table: TypeAlias = Sequence[Sequence[TableCell]]
_Grid: TypeAlias = list[list[_Square]]


def make_plain_rows(table: Sequence[Sequence[str]], *, place: str | int | None = None) -> Iterator[FileBlock]:
    """Yield the blocks of a table without merged cells.

    >>> [block.text for block in make_plain_rows([["연료", "수"], ["장작", "41"], ["기름", ""]])]
    ['연료: 장작 · 수: 41', '연료: 기름']
    """
    yield from make_rows([[TableCell(text) for text in row] for row in table], place=place)


def make_rows(table: Table, *, place: str | int | None = None) -> Iterator[FileBlock]:
    """Yield the blocks of a table.

    >>> table = [[TableCell("구분", rows=2), TableCell("금액", columns=2)], [TableCell("들어옴"), TableCell("나감")], [TableCell("회비"), TableCell("3")]]
    >>> [block.text for block in make_rows(table)]
    ['금액 나감', '구분: 회비 · 금액 들어옴: 3']
    """  # noqa: E501
    grid = _spread(table)
    while len(grid) > 1 and len(_texts(grid[0])) == 1 and max(map(len, grid)) > 1:
        yield from _make("paragraph", _texts(grid.pop(0)), place)
    if len(grid) == 1:
        yield from _make("row", _texts(grid[0]), place)
    elif grid and _has_row_headers(grid):
        for row in grid:
            yield from _make("row", [f"{row[0].text}: {BETWEEN.join(_texts(row[1:]))}" if _texts(row[1:]) else row[0].text], place)
    elif grid:
        yield from _make_under_headers(grid, _count_header_rows(grid), place)


def _spread(table: Table) -> _Grid:
    """Return the squares that the cells cover, without rows that hold no text."""
    grid: _Grid = []
    reaching: dict[int, tuple[_Square, int]] = {}  # into the rows below, by their column, and for how many more
    for cells in table:
        row: list[_Square] = []
        for cell in [*cells, None]:
            while len(row) < MOST_COLUMNS and len(row) in reaching:
                square, rows = reaching.pop(len(row))
                if rows > 1:
                    reaching[len(row)] = square, rows - 1
                row.append(square)
            if cell is None:
                break
            square = _Square(" ".join(cell.text.split()), cell.is_header, origin=len(grid))
            if cell.rows == 0 and grid and len(row) < len(grid[-1]):
                square = grid[-1][len(row)]
            for at in range(min(max(cell.columns, 1), MOST_COLUMNS - len(row))):
                placed = square._replace(is_repeated=square.is_repeated or at > 0)
                if cell.rows > 1:
                    below = placed if len(placed.text) <= LONGEST_REPEATED else placed._replace(text="")
                    reaching[len(row)] = below, cell.rows - 1
                row.append(placed)
        if _texts(row):
            grid.append(row)
    return grid


def _texts(row: Sequence[_Square]) -> list[str]:
    return [square.text for square in row if square.text and not square.is_repeated]


def _has_row_headers(grid: _Grid) -> bool:
    """Say whether the first cell of every row is marked as a header, and the first row is not one of headers."""
    return all(row[0].is_header for row in grid) and not all(square.is_header for square in grid[0])


def _count_header_rows(grid: _Grid) -> int:
    """Return how many rows the cells of the first one reach into."""
    origin = grid[0][0].origin
    reached = (any(square.origin == origin for square in row) for row in grid[1:-1])
    rows = 1 + sum(1 for _ in takewhile(bool, reached))
    return rows if rows <= MOST_HEADER_ROWS else 1


def _make_under_headers(grid: _Grid, headers: int, place: str | int | None) -> Iterator[FileBlock]:
    width = max(map(len, grid))
    columns = [[row[at].text for row in grid[:headers] if at < len(row) and row[at].text] for at in range(width)]
    names = [" ".join(dict.fromkeys(column)) for column in columns]
    used = {at for row in grid[headers:] for at, square in enumerate(row) if square.text and not square.is_repeated}
    unused = [name for at, name in enumerate(names) if at not in used and name not in {names[each] for each in used}]
    yield from _make("row", list(dict.fromkeys(filter(None, unused))), place)
    for row in grid[headers:]:
        cells = [
            f"{name}: {square.text}" if name else square.text
            for name, square in zip(names, row, strict=False)
            if square.text and not square.is_repeated
        ]
        yield from _make("row", cells, place)


def _make(kind: str, texts: Sequence[str], place: str | int | None) -> Iterator[FileBlock]:
    block = make_block("row" if kind == "row" else "paragraph", BETWEEN.join(texts), place=place)
    if block is not None:
        yield block
