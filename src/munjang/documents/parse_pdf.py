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

LARGER = 1.1
"""A heading's letters, in those of the body."""
PARAGRAPH_GAP = 0.75
"""White space between two lines that parts paragraphs, in the height of a line."""
SHORT_LINE = 0.8
"""A line that ends before this part of its page's widest line ends its paragraph."""
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
    import pypdfium2

    document = pypdfium2.PdfDocument(raw)
    try:
        pages = [_read_page(document, number) for number in range(len(document))]
    finally:
        document.close()
    levels = _find_levels([line for page in pages for line in page])
    blocks = [block for page in pages for block in _page_blocks(page, levels)]
    return ParsedFile(tuple(blocks), pages=len(pages), empty_pages=sum(not page for page in pages))


def _read_page(document: Any, number: int) -> list[PdfLine]:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            return list(_lines(text_page, number + 1))
        finally:
            text_page.close()
    finally:
        page.close()


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


def _page_blocks(lines: Sequence[PdfLine], levels: dict[float, int]) -> Iterator[FileBlock]:
    widest = max((line.right for line in lines), default=0.0)
    group: list[PdfLine] = []
    for line in lines:
        if group and _begins_block(group[-1], line, widest):
            yield from _group_blocks(group, levels)
            group = []
        group.append(line)
    if group:
        yield from _group_blocks(group, levels)


def _begins_block(before: PdfLine, line: PdfLine, widest: float) -> bool:
    if _BULLET.match(line.text) or before.size != line.size:
        return True
    if before.size == 0.0:
        return False
    height = before.top - before.bottom
    gap = before.bottom - line.top
    return gap > PARAGRAPH_GAP * height or gap < -2 * height or before.right < SHORT_LINE * widest


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
