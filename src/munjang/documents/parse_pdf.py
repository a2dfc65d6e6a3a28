"""PDF → blocks with page numbers, by PDFium.

PDFium gives characters and their boxes; lines and paragraphs follow from these. A line in larger letters than the body's is a heading: the
sizes above the body's, largest first, are its levels. Lines join to a paragraph until there is a gap, another size, a bullet, or a line
that ends early. A PDF whose pages have no characters is a scan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import byref
from dataclasses import dataclass
from math import hypot
from typing import Any

from munjang.documents.blocks import LONGEST_HEADING, FileBlock, ParsedFile, make_block
from munjang.documents.pdf_tables import PdfTable, find_tables
from munjang.documents.tables import make_rows

LARGER = 1.1
"""A heading's letters, in those of the body."""
PARAGRAPH_GAP = 0.75
"""White space between two lines that parts paragraphs, in the height of a line."""
SHORT_LINE = 0.8
"""A line that ends before this part of the full lines around it ends its paragraph."""
FULL_LINE = 0.92
"""Lines that reach so far fill their column."""
COLUMN_LINES, SHORTEST_COLUMN = 3, 10.0
"""Lines of a column, and the letters in each of them, at least."""
MOST_LEVELS = 6

_BULLET = re.compile(r"^[•◦▪■□○●‣·–-]\s+")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line of a page; sizes and places in points, from the page's lower left corner."""

    text: str
    page: int
    size: float
    left: float
    right: float
    top: float
    bottom: float


def parse_pdf(raw: bytes) -> ParsedFile:
    """Return the blocks of a file."""
    pages: list[list[PdfLine | PdfTable]] = []
    while more := _read_pages(raw, len(pages)):
        pages += more
    levels = _find_levels([part for page in pages for part in page if isinstance(part, PdfLine)])
    blocks = [block for number, page in enumerate(pages, start=1) for block in _page_blocks(page, number, levels)]
    return ParsedFile(tuple(blocks), pages=len(pages), empty_pages=sum(not page for page in pages))


PAGES_AT_ONCE = 500
"""Pages after which a file is opened anew: PDFium keeps the fonts of all pages that it has read."""


def _read_pages(raw: bytes, first: int) -> list[list[PdfLine | PdfTable]]:
    """Return the next pages from this one on; none behind the last."""
    import pypdfium2

    document = pypdfium2.PdfDocument(raw)
    try:
        return [_read_page(document, number) for number in range(first, min(len(document), first + PAGES_AT_ONCE))]
    finally:
        document.close()


def _read_page(document: Any, number: int) -> list[PdfLine | PdfTable]:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            return _place_tables(list(_lines(text_page, number + 1)), find_tables(page, text_page))
        finally:
            text_page.close()
    finally:
        page.close()


def _place_tables(lines: Sequence[PdfLine], tables: Sequence[PdfTable]) -> list[PdfLine | PdfTable]:
    """Return the lines of a page with tables in the place of the lines within them; one that would cut words apart is none."""
    within: dict[PdfLine, PdfTable] = {}
    for table in tables:
        inside = [line for line in lines if line.size and table.holds((line.left + line.right) / 2, (line.bottom + line.top) / 2)]
        if Counter(word for line in inside for word in line.text.split()) == Counter(table.list_words()):
            within |= dict.fromkeys(inside, table)
    placed: list[PdfLine | PdfTable] = []
    for line in lines:
        part = within.get(line, line)
        if isinstance(part, PdfLine) or part not in placed:
            placed.append(part)
    return placed


def _lines(text_page: Any, page: int) -> Iterator[PdfLine]:
    text = text_page.get_text_range(errors="ignore")
    has_boxes = text_page.count_chars() == len(text)  # characters beyond the basic plane shift the places of boxes
    start = 0
    for end in [*_LINE_END.finditer(text), None]:
        stop = len(text) if end is None else end.start()
        line = text[start:stop]
        if line.strip():
            first, last = start + len(line) - len(line.lstrip()), start + len(line.rstrip()) - 1
            yield _make_line(text_page, line, page, (first, (first + last) // 2, last) if has_boxes else ())
        start = stop if end is None else end.end()


def _make_line(text_page: Any, text: str, page: int, places: Sequence[int]) -> PdfLine:
    boxes = [box for box in (_box(text_page, place) for place in places) if box is not None]
    if not boxes:
        return PdfLine(text, page, 0.0, 0.0, 0.0, 0.0, 0.0)
    top, bottom = max(box[3] for box in boxes), min(box[1] for box in boxes)
    size = sorted(_font_size(text_page, place) for place in places)[len(places) // 2]
    return PdfLine(text, page, round(size * 2) / 2, boxes[0][0], boxes[-1][2], top, bottom)


def _box(text_page: Any, place: int) -> tuple[float, float, float, float] | None:
    """Return left, bottom, right and top of a character with the room that its font gives it."""
    from pypdfium2.raw import FS_RECTF, FPDFText_GetLooseCharBox

    box = FS_RECTF()
    if not FPDFText_GetLooseCharBox(text_page.raw, place, byref(box)):
        return None
    return box.left, box.bottom, box.right, box.top


def _font_size(text_page: Any, place: int) -> float:
    """Return the size of a character's font as it is drawn; boxes would tell the fonts' own heights, which differ within a line."""
    from pypdfium2.raw import FS_MATRIX, FPDFText_GetFontSize, FPDFText_GetMatrix

    matrix = FS_MATRIX()
    scale = hypot(matrix.c, matrix.d) if FPDFText_GetMatrix(text_page.raw, place, byref(matrix)) else 1.0
    return float(FPDFText_GetFontSize(text_page.raw, place)) * scale


def _find_levels(lines: Sequence[PdfLine]) -> dict[float, int]:
    """Return the level of each size that is a heading's."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    larger = sorted((size for size in sizes if body and size > body * LARGER), reverse=True)
    return {size: min(level, MOST_LEVELS) for level, size in enumerate(larger, start=1)}


def _page_blocks(parts: Sequence[PdfLine | PdfTable], page: int, levels: dict[float, int]) -> Iterator[FileBlock]:
    ends = _find_column_ends([part for part in parts if isinstance(part, PdfLine)])
    group: list[PdfLine] = []
    for part in [*parts, None]:
        if group and (not isinstance(part, PdfLine) or _begins_block(group[-1], part, ends[group[-1]])):
            yield from _group_blocks(group, levels)
            group = []
        if isinstance(part, PdfLine):
            group.append(part)
        elif part is not None:
            yield from make_rows(part.rows, place=page)


def _find_column_ends(lines: Sequence[PdfLine]) -> dict[PdfLine, float]:
    """Return where full lines end, for each line: those of its column where the text stands in columns, else the widest of the page."""
    widest = max((line.right for line in lines), default=0.0)
    runs: list[list[PdfLine]] = []
    for line in lines:
        if runs and not _is_apart(runs[-1][-1], line) and abs(line.left - runs[-1][-1].left) <= 3 * line.size:
            runs[-1].append(line)
        else:
            runs.append([line])
    ends: dict[PdfLine, float] = {}
    for run in runs:
        end = max(line.right for line in run)
        full = sum(line.right >= FULL_LINE * end and _is_dense(line) for line in run)
        ends |= dict.fromkeys(run, end if len(run) >= COLUMN_LINES and full >= 0.6 * len(run) else widest)
    return ends


def _is_dense(line: PdfLine) -> bool:
    """Say whether letters fill a line, which they do not in a row of a table or a form."""
    letters = sum(1.0 if ord(character) > 0x2E80 else 0.5 for character in line.text)  # in the size of the font
    return letters >= SHORTEST_COLUMN and letters * line.size >= 0.8 * (line.right - line.left)


def _is_apart(before: PdfLine, line: PdfLine) -> bool:
    """Say whether two lines differ in size, or have a gap between them; a line further up begins another column."""
    height, gap = before.top - before.bottom, before.bottom - line.top
    return before.size != line.size or gap > PARAGRAPH_GAP * height or gap < -2 * height


def _begins_block(before: PdfLine, line: PdfLine, end: float) -> bool:
    if _BULLET.match(line.text) or before.size != line.size:
        return True
    return before.size > 0 and (_is_apart(before, line) or before.right < SHORT_LINE * end)


def _group_blocks(group: Sequence[PdfLine], levels: dict[float, int]) -> Iterator[FileBlock]:
    first = group[0]
    text = _join_lines([line.text for line in group])
    level = levels.get(first.size, 0)
    if level and len(text) <= LONGEST_HEADING:
        block = make_block("heading", text, level=level, place=first.page)
    else:
        bullet = _BULLET.match(text)
        block = make_block("item" if bullet else "paragraph", text[bullet.end() :] if bullet else text, place=first.page)
    if block is not None:
        yield block


def _join_lines(lines: Sequence[str]) -> str:
    r"""Return lines as one; PDFium marks a hyphen at a line's end with U+0002, and the word goes on.

    >>> _join_lines(["a long exam\x02", "ple of", "words"])
    'a long example of words'
    """
    return " ".join(line.strip(" ") for line in lines).replace("\x02 ", "").replace("\x02", "")
