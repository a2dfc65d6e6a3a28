"""Word, PowerPoint, Excel, OpenDocument, HTML, Markdown, EPUB, RTF and e-mail → blocks, by xberg.

xberg is told the format by its suffix and gets bytes, never a path or an address. It reads no image: pictures are not recognised.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from munjang.documents.blocks import FileBlock, ParsedFile, make_block, make_rows
from munjang.documents.formats import DocumentFormat

LONGEST_TITLE = 60
"""Characters of a slide's first line that make it the slide's heading."""

_SKIPPED = ("group", "list", "slide", "image", "page_break")


def parse_office(raw: bytes, format: DocumentFormat) -> ParsedFile:
    """Return the blocks of a file."""
    import xberg

    config = xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        include_document_structure=True,
        pages=xberg.PageConfig(extract_pages=True),
        content_filter=xberg.ContentFilterConfig(include_footnotes=True, strip_repeating_text=False),
    )
    source = xberg.ExtractInput(kind=xberg.ExtractInputKind.BYTES, bytes=raw, mime_type=format.media_type)
    result = asyncio.run(xberg.extract(source, config))
    if not result.results:
        raise ValueError("; ".join(str(error) for error in result.errors) or "nothing was read")
    structure = result.results[0].document
    nodes = [] if structure is None else [(node.page, json.loads(str(node.content))) for node in structure.nodes]
    make = _sheets if format.place_kind == "sheet" else _slides if format.place_kind == "slide" else _flow
    return ParsedFile(tuple(make(nodes)), format.place_kind)


def _flow(nodes: list[tuple[int | None, dict[str, Any]]]) -> Iterator[FileBlock]:
    for _, content in nodes:
        yield from _blocks(content, None)


def _slides(nodes: list[tuple[int | None, dict[str, Any]]]) -> Iterator[FileBlock]:
    """Yield blocks slide by slide; a short first line is the slide's heading."""
    seen: set[int | None] = set()
    for page, content in nodes:
        for block in _blocks(content, page):
            is_title = page not in seen and block.kind == "paragraph" and len(block.text) <= LONGEST_TITLE
            seen.add(page)
            yield FileBlock("heading", block.text, 1, page) if is_title else block


def _sheets(nodes: list[tuple[int | None, dict[str, Any]]]) -> Iterator[FileBlock]:
    """Yield the rows of each sheet; the heading before a table is the sheet's name."""
    name: str | None = None
    for _, content in nodes:
        if content["node_type"] == "heading":
            name = str(content["text"])
        else:
            yield from _blocks(content, name)


def _blocks(content: dict[str, Any], place: str | int | None) -> Iterator[FileBlock]:
    kind = content["node_type"]
    if kind in _SKIPPED:
        return
    block: FileBlock | None
    if kind == "table":
        yield from make_rows(_cells(content["grid"]), place=place)
        return
    if kind == "metadata_block":
        block = make_block("paragraph", "\n".join(f"{each['key']}: {each['value']}" for each in content["entries"]), keep_lines=True)
    elif kind in ("heading", "title"):
        block = make_block("heading", content["text"], level=int(content.get("level") or 1), place=place)
    elif kind == "definition_item":
        block = make_block("item", f"{content.get('term', '')}: {content.get('definition', '')}", place=place)
    else:
        text = content.get("text") or content.get("content") or ""
        block = make_block("item" if kind == "list_item" else "paragraph", str(text), place=place, keep_lines=kind == "code")
    if block is not None:
        yield block


def _cells(grid: dict[str, Any]) -> list[list[str]]:
    table = [[""] * int(grid["cols"]) for _ in range(int(grid["rows"]))]
    for cell in grid["cells"]:
        if cell["row"] < len(table) and cell["col"] < len(table[cell["row"]]):
            table[cell["row"]][cell["col"]] = str(cell["content"])
    return table
