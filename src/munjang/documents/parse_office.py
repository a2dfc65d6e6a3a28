"""Excel, Markdown and RTF → blocks, by xberg; HWP 5, by unhwp.

xberg is told the format by its suffix and gets bytes, never a path or an address. unhwp gives the document's tree as JSON: paragraphs with
their outline, whose level counts from 0, and tables in their place. Hangul decides about pages when it draws them, so blocks of HWP have
none.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

from munjang.documents.blocks import DocumentError, DocumentFormat, FileBlock, ParsedFile, make_block
from munjang.documents.parse_html import decode_text
from munjang.documents.tables import TableCell, make_plain_rows, make_rows

_SKIPPED = ("group", "list", "image", "page_break")
_NOTE_MARK = re.compile(r"\[\^\w{1,10}\]")
"""What xberg writes where a footnote is referred to."""


def parse_with_xberg(raw: bytes, format: DocumentFormat) -> ParsedFile:
    """Return the blocks of a file."""
    import xberg

    config = xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        include_document_structure=True,
        content_filter=xberg.ContentFilterConfig(include_footnotes=True, strip_repeating_text=False),
    )
    if format.media_type == "text/markdown":
        raw = decode_text(raw).encode()
    source = xberg.ExtractInput(kind=xberg.ExtractInputKind.BYTES, bytes=raw, mime_type=format.media_type)
    result = asyncio.run(xberg.extract(source, config))
    if not result.results:
        raise ValueError("; ".join(str(error) for error in result.errors) or "nothing was read")
    structure = result.results[0].document
    nodes = [] if structure is None else [json.loads(str(node.content)) for node in structure.nodes]
    if format.name == "Excel":
        return ParsedFile(tuple(_sheets(nodes)), "sheet")
    return ParsedFile(tuple(block for content in nodes for block in _blocks(content, None)))


def _sheets(nodes: list[dict[str, Any]]) -> Iterator[FileBlock]:
    """Yield the rows of each sheet; the heading before a table is the sheet's name."""
    name: str | None = None
    for content in nodes:
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
        yield from make_plain_rows(_cells(content["grid"]), place=place)
        return
    if kind == "metadata_block":
        block = make_block("paragraph", "\n".join(f"{each['key']}: {each['value']}" for each in content["entries"]), keep_lines=True)
    elif kind in ("heading", "title"):
        block = make_block("heading", content["text"], level=int(content.get("level") or 1), place=place)
    elif kind == "definition_item":
        block = make_block("item", f"{content.get('term', '')}: {content.get('definition', '')}", place=place)
    else:
        text = _NOTE_MARK.sub("", content.get("text") or content.get("content") or "")
        block = make_block("item" if kind == "list_item" else "paragraph", text, place=place, keep_lines=kind == "code")
    if block is not None:
        yield block


def _cells(grid: dict[str, Any]) -> list[list[str]]:
    table = [[""] * int(grid["cols"]) for _ in range(int(grid["rows"]))]
    for cell in grid["cells"]:
        if cell["row"] < len(table) and cell["col"] < len(table[cell["row"]]):
            table[cell["row"]][cell["col"]] = str(cell["content"])
    return table


def parse_hwp(raw: bytes) -> ParsedFile:
    """Return the blocks of a file."""
    import unhwp

    result = unhwp.parse_bytes(raw)
    try:
        tree = json.loads(result.json)
    finally:
        result.close()
    if tree["metadata"].get("is_distribution"):
        raise DocumentError("is a copy for distribution (배포용 문서), whose text is locked\n  save it in Hangul as an ordinary file")
    return ParsedFile(tuple(block for section in tree["sections"] for part in section["content"] for block in _make_hwp_blocks(part)))


def _make_hwp_blocks(part: dict[str, Any]) -> Iterator[FileBlock]:
    [(kind, content)] = part.items()
    if kind == "Table":
        yield from make_rows([[_make_cell(cell) for cell in row["cells"]] for row in content["rows"]])
    elif kind == "Paragraph":
        head = content["style"].get("head") or {}
        level = int(head["level"]) + 1 if head.get("kind") == "Outline" else 0
        text = _join_runs(content)
        block = make_block("heading", text, level=level) if level else make_block("paragraph", text)
        if block is not None:
            yield block


def _make_cell(cell: dict[str, Any]) -> TableCell:
    text = " ".join(_join_runs(paragraph) for paragraph in cell["content"])
    return TableCell(text, int(cell.get("colspan") or 1), int(cell.get("rowspan") or 1))


def _join_runs(paragraph: dict[str, Any]) -> str:
    """Return the text of a paragraph; what is no text (a picture, a formula) separates words."""
    runs = (run.get("Text") if isinstance(run, dict) else None for run in paragraph.get("content", ()))
    return "".join(run["text"] if isinstance(run, dict) else " " for run in runs)
