"""Which files are documents, by their suffix, and who parses each format."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from munjang.documents.blocks import PlaceKind

Parser: TypeAlias = Literal["office", "pdf", "hwp"]


class DocumentFormat(NamedTuple):
    """A format: its name for people, who parses it, what xberg calls it, and what its parts are."""

    name: str
    parser: Parser
    media_type: str = ""
    place_kind: PlaceKind = "page"


_HTML = DocumentFormat("HTML", "office", "text/html")
_MARKDOWN = DocumentFormat("Markdown", "office", "text/markdown")

FORMATS = {
    ".pdf": DocumentFormat("PDF", "pdf"),
    ".docx": DocumentFormat("Word", "office", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ".pptx": DocumentFormat("PowerPoint", "office", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "slide"),
    ".xlsx": DocumentFormat("Excel", "office", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "sheet"),
    ".odt": DocumentFormat("OpenDocument", "office", "application/vnd.oasis.opendocument.text"),
    ".html": _HTML,
    ".htm": _HTML,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".epub": DocumentFormat("EPUB", "office", "application/epub+zip"),
    ".rtf": DocumentFormat("RTF", "office", "application/rtf"),
    ".eml": DocumentFormat("e-mail", "office", "message/rfc822"),
    ".hwp": DocumentFormat("HWP", "hwp"),
    ".hwpx": DocumentFormat("HWPX", "hwp"),
}
"""By suffix, in lower case."""


def find_document_format(path: Path) -> DocumentFormat | None:
    """Return the format that a file's suffix stands for, None for a file that is no document.

    >>> find_document_format(Path("보고서.HWP")).name
    'HWP'
    """
    return FORMATS.get(path.suffix.lower())
