"""HWP 5 and HWPX → blocks, by unhwp.

unhwp gives the document's tree as JSON: paragraphs with their outline, and tables in their place. An outline's level counts from 0 there.
Hangul decides about pages when it draws them, so blocks have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from munjang.documents.blocks import FileBlock, ParsedFile, make_block, make_rows


def parse_hwp(raw: bytes) -> ParsedFile:
    """Return the blocks of a file."""
    import unhwp

    result = unhwp.parse_bytes(raw)
    try:
        tree = json.loads(result.json)
    finally:
        result.close()
    return ParsedFile(tuple(block for section in tree["sections"] for part in section["content"] for block in _blocks(part)))


def _blocks(part: dict[str, Any]) -> Iterator[FileBlock]:
    [(kind, content)] = part.items()
    if kind == "Table":
        yield from make_rows([[_cell_text(cell) for cell in row["cells"]] for row in content["rows"]])
    elif kind == "Paragraph":
        head = content["style"].get("head") or {}
        level = int(head["level"]) + 1 if head.get("kind") == "Outline" else 0
        text = _text(content)
        block = make_block("heading", text, level=level) if level else make_block("paragraph", text)
        if block is not None:
            yield block


def _cell_text(cell: dict[str, Any]) -> str:
    return " ".join(_text(paragraph) for paragraph in cell["content"])


def _text(paragraph: dict[str, Any]) -> str:
    """Return the text of a paragraph; what is no text (a picture, a formula) separates words."""
    runs = (run.get("Text") if isinstance(run, dict) else None for run in paragraph.get("content", ()))
    return "".join(run["text"] if isinstance(run, dict) else " " for run in runs)
