"""Which files are documents and who parses each format; and what a parser hands over, blocks in the order of reading.

A block is a heading, a paragraph, an item of a list or a row of a table. Its text is in NFC, without control characters, with single
spaces; code keeps its lines. A row carries its table's headers: `연료: 장작 · 집의 수: 41`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from munjang.errors import InputError

BlockKind: TypeAlias = Literal["heading", "paragraph", "item", "row"]
PlaceKind: TypeAlias = Literal["page", "slide", "sheet"]

LONGEST_HEADING = 150
"""Characters; what is longer is a paragraph, whatever its style says."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]|[\ud800-\udfff]")


class DocumentError(InputError):
    """One file cannot be read as a document; the message says why, without its name."""


class ScannedDocument(DocumentError):
    """A PDF that holds pictures of pages and no text."""


@dataclass(frozen=True, slots=True)
class FileBlock:
    """One piece of a file."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading, from 1."""
    place: str | int | None = None
    """The page or slide, from 1, or the sheet's name."""


@dataclass(frozen=True)
class ParsedFile:
    """All blocks of a file, and what its places are."""

    blocks: tuple[FileBlock, ...]
    place_kind: PlaceKind = "page"
    pages: int = 0
    empty_pages: int = 0
    """Pages of a PDF without a single character."""


def make_block(kind: BlockKind, text: str, *, level: int = 0, place: str | int | None = None, keep_lines: bool = False) -> FileBlock | None:
    """Return a block with a tidy text, or None if nothing is left of it."""
    tidy = _CONTROL.sub("", unicodedata.normalize("NFC", text.replace("\u00a0", " ").replace("\u200b", "")))
    tidy = "\n".join(line.rstrip() for line in tidy.splitlines()).strip("\n") if keep_lines else " ".join(tidy.split())
    if not tidy.strip():
        return None
    if kind == "heading" and len(tidy) > LONGEST_HEADING:
        kind, level = "paragraph", 0
    return FileBlock(kind, tidy, level if kind == "heading" else 0, place)


Parser: TypeAlias = Literal["html", "epub", "email", "odt", "docx", "pptx", "hwpx", "pdf", "hwp", "xberg"]


class DocumentFormat(NamedTuple):
    """A format: its name for people, who parses it, and what xberg calls it."""

    name: str
    parser: Parser
    media_type: str = ""

    @property
    def package(self) -> str | None:
        """What has to be installed to read it; None for Python's own parsers."""
        return {"pdf": "pypdfium2", "hwp": "unhwp", "xberg": "xberg"}.get(self.parser)


_HTML = DocumentFormat("HTML", "html")
_MARKDOWN = DocumentFormat("Markdown", "xberg", "text/markdown")

FORMATS = {
    ".pdf": DocumentFormat("PDF", "pdf"),
    ".docx": DocumentFormat("Word", "docx"),
    ".pptx": DocumentFormat("PowerPoint", "pptx"),
    ".xlsx": DocumentFormat("Excel", "xberg", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ".odt": DocumentFormat("OpenDocument", "odt"),
    ".html": _HTML,
    ".htm": _HTML,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".epub": DocumentFormat("EPUB", "epub"),
    ".rtf": DocumentFormat("RTF", "xberg", "application/rtf"),
    ".eml": DocumentFormat("e-mail", "email"),
    ".hwp": DocumentFormat("HWP", "hwp"),
    ".hwpx": DocumentFormat("HWPX", "hwpx"),
}
"""By suffix, in lower case."""


def find_document_format(path: Path) -> DocumentFormat | None:
    """Return the format that a file's suffix stands for, None for a file that is no document.

    >>> find_document_format(Path("보고서.HWP")).name
    'HWP'
    """
    return FORMATS.get(path.suffix.lower())
