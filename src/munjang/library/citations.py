"""A document's metadata → where its passage stands, for people: file, page or slide or sheet, headings.

Files that were read as documents (`munjang.documents`) say in their metadata where each of their sections stood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cite(metadata: Mapping[str, Any], start: int = 0) -> str | None:
    """Return where a passage stands, for people: file, page or slide or sheet, and headings; None for what came from no file.

    `start` is where the passage begins in its section, in characters.

    >>> cite({"file": "report.pdf", "page": 3, "pages": [[900, 4]], "heading": "Winter › Roads", "section": 2}, 950)
    'report.pdf, page 4, Winter › Roads'
    """
    if not isinstance(metadata.get("file"), str) or not isinstance(metadata.get("section"), int):
        return None
    parts = [metadata["file"]]
    for kind in ("page", "slide", "sheet"):
        if isinstance(place := metadata.get(kind), str | int):
            parts.append(f"{kind} {_page_at(metadata, start) if kind == 'page' else place}")
    if isinstance(metadata.get("heading"), str):
        parts.append(metadata["heading"])
    return ", ".join(parts)


def _page_at(metadata: Mapping[str, Any], start: int) -> Any:
    page = metadata["page"]
    further = metadata.get("pages")
    for each in further if isinstance(further, list) else ():
        if isinstance(each, list) and len(each) == 2 and isinstance(each[0], int) and each[0] <= start:
            page = each[1]
    return page
