"""A page of a PDF → its tables, by the lines that are drawn around cells.

Thin shapes and straight strokes are rulings. Those that touch each other make a frame; where a frame has two columns and two rows at least,
it is a table, and its cells are what lies between rulings. A ruling that is missing between two squares merges them. Tables without rulings
stay lines of text. Places are in points from the page's lower left corner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_float
from dataclasses import dataclass
from typing import Any, NamedTuple

from munjang.documents.tables import TableCell

THIN = 2.5
"""Points; what is thinner is a ruling."""
NEAR = 3.0
"""Points between rulings that touch, or that are one."""
SHORTEST = 6.0
"""Points of a ruling."""
MOST_SHAPES = 4_000
MOST_RULINGS = 300
MOST_SEGMENTS = 400
"""Of a page and of a shape; what has more is a drawing."""
MOST_SQUARES = 5_000
REGULAR = 0.6
"""Cells of a table, in the squares of its grid; a form with more merged ones has no headers."""
LONGEST_CELL = 1_500
"""Characters; what holds more is a frame around text, and no table."""


class Ruling(NamedTuple):
    """A straight line along one axis: where it lies on the other one, and from where to where it goes."""

    at: float
    start: float
    stop: float


@dataclass(frozen=True)
class PdfTable:
    """A table and the room that it takes."""

    left: float
    bottom: float
    right: float
    top: float
    rows: tuple[tuple[TableCell, ...], ...]

    def list_words(self) -> list[str]:
        """Return the words of all cells."""
        return [word for row in self.rows for cell in row for word in cell.text.split()]

    def holds(self, x: float, y: float) -> bool:
        """Say whether a point lies in it."""
        return self.left - NEAR <= x <= self.right + NEAR and self.bottom - NEAR <= y <= self.top + NEAR


def find_tables(page: Any, text_page: Any) -> list[PdfTable]:
    """Return the tables of a page."""
    across, down = _find_rulings(page)
    found = [_read_table(text_page, *frame) for frame in _find_frames(across, down)]
    return [table for table in found if table is not None]


def _find_rulings(page: Any) -> tuple[list[Ruling], list[Ruling]]:
    """Return the rulings across a page and those down it; none of a page that is a drawing."""
    import pypdfium2.raw as pdfium

    across: list[Ruling] = []
    down: list[Ruling] = []
    shapes = pdfium.FPDFPage_CountObjects(page.raw)
    for number in range(min(shapes, MOST_SHAPES)):
        shape = pdfium.FPDFPage_GetObject(page.raw, number)
        if pdfium.FPDFPageObj_GetType(shape) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        for left, bottom, right, top in _list_boxes(shape):
            if top - bottom <= THIN and right - left >= SHORTEST:
                across.append(Ruling((bottom + top) / 2, left, right))
            elif right - left <= THIN and top - bottom >= SHORTEST:
                down.append(Ruling((left + right) / 2, bottom, top))
    across, down = _merge(across), _merge(down)
    return (across, down) if len(across) <= MOST_RULINGS and len(down) <= MOST_RULINGS else ([], [])


def _list_boxes(shape: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the box of a thin shape, else those of the straight lines that it is made of."""
    import pypdfium2.raw as pdfium

    bounds = [c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(shape, *map(byref, bounds)):
        return
    left, bottom, right, top = (each.value for each in bounds)
    if min(right - left, top - bottom) <= THIN:
        yield left, bottom, right, top
        return
    segments = pdfium.FPDFPath_CountSegments(shape)
    matrix = pdfium.FS_MATRIX()
    if not 2 <= segments <= MOST_SEGMENTS or not pdfium.FPDFPageObj_GetMatrix(shape, byref(matrix)):
        return
    first = last = (0.0, 0.0)
    for number in range(segments):
        segment = pdfium.FPDFPath_GetPathSegment(shape, number)
        x, y = c_float(), c_float()
        pdfium.FPDFPathSegment_GetPoint(segment, byref(x), byref(y))
        point = (matrix.a * x.value + matrix.c * y.value + matrix.e, matrix.b * x.value + matrix.d * y.value + matrix.f)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            yield _box_of(last, point)
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield _box_of(point, first)
        last = point


def _box_of(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float, float, float]:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])


def _merge(rulings: Iterable[Ruling]) -> list[Ruling]:
    """Return rulings with those joined that lie on one line and touch.

    >>> _merge([Ruling(10, 0, 50), Ruling(10.4, 49, 90), Ruling(30, 0, 50)])
    [Ruling(at=10, start=0, stop=90), Ruling(at=30, start=0, stop=50)]
    """
    lines: list[list[Ruling]] = []
    for ruling in sorted(rulings):
        if lines and ruling.at - lines[-1][0].at <= NEAR:
            lines[-1].append(ruling)
        else:
            lines.append([ruling])
    merged: list[Ruling] = []
    for line in lines:
        at = line[0].at
        for ruling in sorted(line, key=lambda each: each.start):
            if merged and merged[-1].at == at and ruling.start <= merged[-1].stop + NEAR:
                merged[-1] = merged[-1]._replace(stop=max(merged[-1].stop, ruling.stop))
            else:
                merged.append(ruling._replace(at=at))
    return merged


def _find_frames(across: Sequence[Ruling], down: Sequence[Ruling]) -> Iterator[tuple[list[Ruling], list[Ruling]]]:
    """Yield groups of rulings that touch each other."""
    left = set(range(len(down)))
    waiting = set(range(len(across)))
    while waiting:
        group_across, group_down, fresh = set[int](), set[int](), {waiting.pop()}
        while fresh:
            group_across |= fresh
            met = {each for each in left if any(_touch(across[other], down[each]) for other in fresh)}
            group_down |= met
            left -= met
            fresh = {each for each in waiting if any(_touch(across[each], down[other]) for other in met)}
            waiting -= fresh
        if group_down:
            yield [across[each] for each in sorted(group_across)], [down[each] for each in sorted(group_down)]


def _touch(across: Ruling, down: Ruling) -> bool:
    return down.start - NEAR <= across.at <= down.stop + NEAR and across.start - NEAR <= down.at <= across.stop + NEAR


def _read_table(text_page: Any, across: Sequence[Ruling], down: Sequence[Ruling]) -> PdfTable | None:
    """Return the table within a frame, None if it has a single row or column."""
    xs = _cluster([each.at for each in down] + [min(each.start for each in across), max(each.stop for each in across)])
    ys = _cluster([each.at for each in across] + [min(each.start for each in down), max(each.stop for each in down)])[::-1]
    columns, rows = len(xs) - 1, len(ys) - 1
    if columns < 2 or rows < 2 or columns * rows > MOST_SQUARES:
        return None
    taken: set[tuple[int, int]] = set()
    table: list[tuple[TableCell, ...]] = []
    for row in range(rows):
        cells = []
        for column in range(columns):
            if (row, column) in taken:
                continue
            wide = 1
            middle = (ys[row] + ys[row + 1]) / 2
            while column + wide < columns and (row, column + wide) not in taken and not _is_ruled(down, xs[column + wide], middle):
                wide += 1
            high, centre = 1, (xs[column] + xs[column + 1]) / 2
            while row + high < rows and not _is_ruled(across, ys[row + high], centre):
                high += 1
            taken |= {(row + y, column + x) for y in range(high) for x in range(wide)}
            text = text_page.get_text_bounded(xs[column], ys[row + high], xs[column + wide], ys[row], errors="ignore")
            if len(text) > LONGEST_CELL:
                return None
            cells.append(TableCell(text.replace("\x02", ""), wide, high))
        table.append(tuple(cells))
    is_regular = sum(map(len, table)) >= REGULAR * rows * columns
    return PdfTable(xs[0], ys[-1], xs[-1], ys[0], tuple(table)) if is_regular else None


def _cluster(places: Iterable[float]) -> list[float]:
    """Return places in ascending order, near ones once.

    >>> _cluster([30.0, 10.0, 11.0])
    [10.0, 30.0]
    """
    found: list[float] = []
    for place in sorted(places):
        if not found or place - found[-1] > NEAR:
            found.append(place)
    return found


def _is_ruled(rulings: Sequence[Ruling], at: float, point: float) -> bool:
    """Say whether a ruling passes a point on the line at a place."""
    return any(abs(each.at - at) <= NEAR and each.start <= point <= each.stop for each in rulings)
