"""Archives of XML (OpenDocument text, Word, PowerPoint, HWPX) → blocks, with Python's own parsers of archives and of XML (expat).

Each format has a table of what its elements mean, by their names without namespaces. expat resolves no outside entity and bounds those
inside. Deleted text, comments, and what a format keeps twice for older readers are left out; footnotes and text boxes come behind the
paragraph that they stand in.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import groupby
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import ZipFile

from munjang.documents.blocks import DocumentError, FileBlock, ParsedFile
from munjang.documents.markup import BlockWriter

MOST_LEVELS = 9
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
"""What old Office files begin with, and new ones with a password."""


@dataclass(frozen=True)
class XmlFormat:
    """What the elements of a format mean; those that are not named are looked into."""

    texts: frozenset[str] = frozenset()
    """Elements whose text counts; where none are named, all text does."""
    spaces: frozenset[str] = frozenset()
    """Elements that stand for white space."""
    skipped: frozenset[str] = frozenset()
    paragraphs: frozenset[str] = frozenset(("p",))
    items: frozenset[str] = frozenset()
    """Elements around paragraphs that make them items of a list."""
    table: str = "tbl"
    row: str = "tr"
    cell: str = "tc"


ODT = XmlFormat(
    spaces=frozenset(("tab", "line-break", "s", "soft-page-break")),
    skipped=frozenset(
        """
        note-citation annotation tracked-changes forms scripts font-face-decls automatic-styles title desc table-of-content-source
        alphabetical-index-source bibliography-source illustration-index-source object-index-source table-index-source user-index-source
        """.split()  # noqa: SIM905
    ),
    paragraphs=frozenset(("p", "h")),
    items=frozenset(("list-item",)),
    table="table",
    row="table-row",
    cell="table-cell",
)
WORD = XmlFormat(
    texts=frozenset(("t",)),
    spaces=frozenset(("tab", "br", "cr", "ptab")),
    skipped=frozenset(("del", "moveFrom", "Fallback", "sectPr", "tblPrEx")),
)
SLIDES = XmlFormat(texts=frozenset(("t",)), spaces=frozenset(("br",)), skipped=frozenset(("fld", "Fallback", "extLst")))
HWPX = XmlFormat(
    texts=frozenset(("t",)),
    spaces=frozenset(("tab", "lineBreak", "nbSpace", "fwSpace")),
    skipped=frozenset(("secPr", "hiddenComment", "parameterset")),
)
LONGEST_TITLE = 60
"""Characters of a slide's first line that may be its heading."""

_SLIDE_PARTS = re.compile("/(?:charts/chart|diagrams/data|notesSlides/notesSlide)[0-9]*[.]xml$")
_FURNITURE = ("sldNum", "ftr", "dt")  # of slides: numbers, footers, dates
_HEADING_STYLE = re.compile(r"^heading (\d)$|^(title)$", re.IGNORECASE)


@dataclass
class _XmlReader:
    """Hands what expat meets to a writer."""

    format: XmlFormat
    writer: BlockWriter
    levels: Mapping[str, int] = field(default_factory=dict)
    """Of headings, by the name of a paragraph's style."""
    _skipped: int = 0
    _texts: int = 0
    _items: int = 0
    _shape: str | None = None
    """What kind of placeholder the open shape of a slide is."""

    def read(self, raw: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = self._start, self._end, self._add
        parser.Parse(raw, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        format, writer = self.format, self.writer
        if self._skipped or name in format.skipped or (name == "txBody" and self._shape in _FURNITURE):
            self._skipped += 1
            return
        own = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        if name in format.texts:
            self._texts += 1
        elif name in format.spaces:
            writer.add(" ")
        elif name in format.paragraphs:
            self._open_paragraph(name, own)
        elif name in format.items:
            self._items += 1
        elif name == format.table:
            writer.open_table()
        elif name == format.row:
            writer.open_row()
        elif name == format.cell:
            self._open_cell(own)
        else:
            self._take_property(name, own)

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        format, writer = self.format, self.writer
        if self._skipped:
            self._skipped -= 1
        elif name in format.texts:
            self._texts -= 1
        elif name in format.paragraphs:
            writer.close_block()
        elif name in format.items:
            self._items -= 1
        elif name == format.table:
            writer.close_table()
        elif name == format.row:
            writer.close_row()
        elif name == "sp":
            self._shape = None

    def _add(self, text: str) -> None:
        if not self._skipped and (self._texts or not self.format.texts):
            self.writer.add(text)

    def _open_paragraph(self, name: str, attributes: dict[str, str]) -> None:
        level = self.levels.get(attributes.get("paraPrIDRef", ""), 0)
        if name == "h":
            level = _number(attributes.get("outline-level"), 1)
        elif self._shape in ("title", "ctrTitle"):
            level = 1
        self.writer.open_block("heading" if level else "item" if self._items else "paragraph", level=level)

    def _open_cell(self, attributes: dict[str, str]) -> None:
        columns = attributes.get("number-columns-spanned") or attributes.get("gridSpan")
        rows = attributes.get("number-rows-spanned") or attributes.get("rowSpan")
        if attributes.get("hMerge") != "1" and attributes.get("vMerge") != "1":  # of slides: a cell that another one covers
            self.writer.open_cell(columns=_number(columns, 1), rows=_number(rows, 1), is_header=attributes.get("header") == "1")

    def _take_property(self, name: str, attributes: dict[str, str]) -> None:
        """Take what a format says of the open paragraph or cell inside of it."""
        value = attributes.get("val", "")
        if name == "pStyle" and value in self.levels:
            self.writer.change_block("heading", level=self.levels[value])
        elif name == "outlineLvl" and (level := _number(value, MOST_LEVELS)) < MOST_LEVELS:
            self.writer.change_block("heading", level=level + 1)
        elif name == "numPr":
            self.writer.make_item()
        elif name == "gridSpan":
            self.writer.change_cell(columns=_number(value, 1))
        elif name == "vMerge":
            self.writer.change_cell(rows=None if value == "restart" else 0)
        elif name == "cellSpan":
            self.writer.change_cell(columns=_number(attributes.get("colSpan"), 1), rows=_number(attributes.get("rowSpan"), 1))
        elif name == "ph":
            self._shape = attributes.get("type", "body")


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else default


def open_archive(raw: bytes) -> ZipFile:
    """Return the archive that a file is; refuse one that is locked with a password."""
    if raw.startswith(_COMPOUND_FILE):
        raise DocumentError("is encrypted, or in the format of before 2007\n  save it again, without a password")
    archive = ZipFile(BytesIO(raw))
    manifest = "META-INF/manifest.xml"
    if manifest in archive.namelist() and b"encryption-data" in archive.read(manifest):
        raise DocumentError("is encrypted\n  save it without a password")
    return archive


def parse_odt(raw: bytes) -> ParsedFile:
    """Return the blocks of OpenDocument text."""
    writer = BlockWriter()
    with open_archive(raw) as archive:
        _XmlReader(ODT, writer).read(archive.read("content.xml"))
    return ParsedFile(writer.finish())


def parse_docx(raw: bytes) -> ParsedFile:
    """Return the blocks of a Word file, footnotes and endnotes at its end."""
    writer = BlockWriter()
    with open_archive(raw) as archive:
        names = set(archive.namelist())
        body = _find_document(archive, names)
        folder = posixpath.dirname(body)
        styles = f"{folder}/styles.xml"
        levels = _find_word_levels(archive.read(styles)) if styles in names else {}
        for name in (body, f"{folder}/footnotes.xml", f"{folder}/endnotes.xml"):
            if name in names:
                _XmlReader(WORD, writer, levels).read(archive.read(name))
    return ParsedFile(writer.finish())


def _find_document(archive: ZipFile, names: set[str]) -> str:
    """Return the name of a file's main part."""
    if "_rels/.rels" in names:
        for each in _elements(archive.read("_rels/.rels")):
            if each.get("Type", "").endswith("/officeDocument"):
                return (each.get("Target") or "").lstrip("/")
    return "word/document.xml"


def _find_word_levels(raw: bytes) -> dict[str, int]:
    """Return the level of each style that is a heading's, by its name, its outline, or those of the style that it is based on."""
    own: dict[str, int] = {}
    bases: dict[str, str] = {}
    for style in _elements(raw):
        if not style.tag.endswith("}style"):
            continue
        inner = {each.tag.rpartition("}")[2]: _value(each) for each in style.iter()}
        id = next((value for key, value in style.items() if key.endswith("styleId")), "")
        named = _HEADING_STYLE.search(inner.get("name", ""))
        level = _number(inner.get("outlineLvl"), MOST_LEVELS) + 1 if "outlineLvl" in inner else 0
        own[id] = int(named[1] or 1) if named else level if level <= MOST_LEVELS else 0
        bases[id] = inner.get("basedOn", "")
    return {id: level for id in own if (level := _follow(id, own, bases))}


def _follow(id: str, own: Mapping[str, int], bases: Mapping[str, str]) -> int:
    for _ in range(10):  # styles may be based on each other
        if own.get(id):
            return own[id]
        id = bases.get(id, "")
    return 0


def parse_pptx(raw: bytes) -> ParsedFile:
    """Return the blocks of slides, each with the words of its diagrams and charts, and its notes, behind it."""
    writer = BlockWriter()
    with open_archive(raw) as archive:
        names = set(archive.namelist())
        show = "ppt/presentation.xml"
        targets = _find_targets(archive, show, names)
        ids = [_value(each, "id") for each in _elements(archive.read(show)) if each.tag.endswith("}sldId")]
        for number, slide in enumerate((targets[id] for id in ids if id in targets), start=1):
            writer.place = number
            parts = [name for name in _find_targets(archive, slide, names).values() if _SLIDE_PARTS.search(name)]
            for name in (slide, *sorted(parts)):
                if name in names:
                    _XmlReader(SLIDES, writer).read(archive.read(name))
    return ParsedFile(tuple(_name_slides(writer.finish())), "slide")


def _name_slides(blocks: Iterable[FileBlock]) -> Iterator[FileBlock]:
    """Yield the blocks; where no title was marked, a short first line is the slide's heading."""
    for _, group in groupby(blocks, key=lambda block: block.place):
        first, *others = group
        is_title = first.kind == "paragraph" and len(first.text) <= LONGEST_TITLE and all(each.kind != "heading" for each in others)
        yield replace(first, kind="heading", level=1) if is_title else first
        yield from others


def _find_targets(archive: ZipFile, name: str, names: set[str]) -> dict[str, str]:
    """Return the parts that a part refers to, by the id of the reference."""
    folder, _, file = name.rpartition("/")
    relations = f"{folder}/_rels/{file}.rels"
    if relations not in names:
        return {}
    found = {each.get("Id"): each.get("Target") or "" for each in _elements(archive.read(relations))}
    return {id: posixpath.normpath(posixpath.join(folder, target)).lstrip("/") for id, target in found.items() if id}


def parse_hwpx(raw: bytes) -> ParsedFile:
    """Return the blocks of an HWPX file, section by section."""
    writer = BlockWriter()
    with open_archive(raw) as archive:
        names = archive.namelist()
        sections = sorted((name for name in names if re.fullmatch(r"Contents/section\d+\.xml", name)), key=_section_number)
        header = "Contents/header.xml"
        levels = _find_hwpx_levels(archive.read(header)) if header in names else {}
        for name in sections:
            _XmlReader(HWPX, writer, levels).read(archive.read(name))
    if not sections:
        raise ValueError("it has no section")
    return ParsedFile(writer.finish())


def _section_number(name: str) -> int:
    return int("".join(filter(str.isdigit, name)))


def _find_hwpx_levels(raw: bytes) -> dict[str, int]:
    """Return the level of each shape of paragraphs that is an outline's."""
    levels = {}
    for shape in _elements(raw):
        if shape.tag.endswith("}paraPr"):
            heading = next((each for each in shape if each.tag.endswith("}heading") and each.get("type") == "OUTLINE"), None)
            if heading is not None:
                levels[shape.get("id", "")] = _number(heading.get("level"), 0) + 1
    return levels


def _elements(raw: bytes) -> Any:
    return ElementTree.fromstring(raw).iter()  # noqa: S314 - expat bounds entities and fetches nothing


def _value(element: Any, name: str = "val") -> str:
    """Return an attribute of Word or PowerPoint, whose names have a namespace."""
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), "")
