"""Files of documents → sections, and records of them for a library, with the file and the place in their metadata.

A section never reaches over a heading, a slide or a sheet, unless the piece before is tiny. It is filled with whole paragraphs up to the
length of a passage; a longer paragraph is a section alone, which the library splits at sentences. Places count characters in the file's
whole text: the sections with an empty line between them.

The record of a file of one section has the file's name as id, one of several `name#1`, `name#2` …. The metadata are `file`, `file_hash`,
`section`, `sections`, and what `Section.facts` says; a hit cites them (`library/results.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from munjang.documents.blocks import FileBlock, ParsedFile, PlaceKind, find_document_format
from munjang.documents.reader_process import DocumentReader
from munjang.text.records import Record

TINY = 60
"""Characters of a piece that may join what follows its heading's end."""
SECTION_CHARACTERS = 1_000
HEADING_MARK = " › "
SEPARATOR = "\n\n"


@dataclass(frozen=True)
class Section:
    """A piece of a file."""

    text: str
    start: int
    """Where it begins in the file's text, in characters."""
    heading: tuple[str, ...] = ()
    """The headings that it stands under, the highest first."""
    place_kind: PlaceKind = "page"
    place: str | int | None = None
    """The page or slide that it begins on, or the name of its sheet."""
    pages: tuple[tuple[int, int], ...] = ()
    """Where further pages begin in it: characters from its start, and the page."""

    @property
    def stop(self) -> int:
        """Where it ends in the file's text."""
        return self.start + len(self.text)

    def facts(self) -> dict[str, Any]:
        """Return its place as metadata: what there is of page, slide or sheet, heading, start and stop."""
        facts: dict[str, Any] = {} if self.place is None else {self.place_kind: self.place}
        if self.pages:
            facts["pages"] = [list(each) for each in self.pages]
        if self.heading:
            facts["heading"] = HEADING_MARK.join(self.heading)
        return {**facts, "start": self.start, "stop": self.stop}


@dataclass
class _Piece:
    heading: tuple[str, ...]
    blocks: list[FileBlock] = field(default_factory=list)

    @property
    def characters(self) -> int:
        return sum(len(block.text) + 2 for block in self.blocks)

    @property
    def place(self) -> str | int | None:
        return self.blocks[0].place


def make_sections(parsed: ParsedFile, *, characters: int = SECTION_CHARACTERS) -> list[Section]:
    """Return the sections of a file."""
    sections: list[Section] = []
    start = 0
    for piece in _join_tiny(_cut(parsed, characters), parsed.place_kind, characters):
        section = _make_section(piece, start, parsed.place_kind)
        sections.append(section)
        start = section.stop + len(SEPARATOR)
    return sections


def _cut(parsed: ParsedFile, characters: int) -> Iterator[_Piece]:
    """Yield pieces of blocks under one heading that fit a passage."""
    path: list[tuple[int, str]] = []
    piece: _Piece | None = None
    for block in parsed.blocks:
        if block.kind == "heading":
            path = [*((level, text) for level, text in path if level < block.level), (block.level, block.text)]
            is_full = True
        else:
            is_full = piece is not None and piece.characters + len(block.text) > characters and piece.blocks[-1].kind != "heading"
        is_elsewhere = piece is not None and parsed.place_kind != "page" and piece.place != block.place  # paragraphs go on over pages
        if piece is not None and (is_full or is_elsewhere):
            yield piece
            piece = None
        if piece is None:
            piece = _Piece(tuple(text for _, text in path))
        piece.blocks.append(block)
    if piece is not None:
        yield piece


def _join_tiny(pieces: Iterable[_Piece], place_kind: PlaceKind, characters: int) -> Iterator[_Piece]:
    """Yield pieces; a tiny one joins the next, and keeps the heading that both share."""
    waiting: _Piece | None = None
    for piece in pieces:
        is_same_place = place_kind == "page" or waiting is None or waiting.place == piece.place
        if waiting is not None and waiting.characters <= TINY and is_same_place and waiting.characters + piece.characters <= characters:
            has_only_headings = all(block.kind == "heading" for block in waiting.blocks)
            heading = piece.heading if has_only_headings else _share_headings(waiting.heading, piece.heading)
            waiting = _Piece(heading, [*waiting.blocks, *piece.blocks])
            continue
        if waiting is not None:
            yield waiting
        waiting = piece
    if waiting is not None:
        yield waiting


def _share_headings(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the headings that two pieces share, or the first one's where they share none."""
    shared = tuple(mine for mine, theirs in zip(one, other, strict=False) if mine == theirs)
    return shared or one


def _make_section(piece: _Piece, start: int, place_kind: PlaceKind) -> Section:
    text, pages = "", []
    for before, block in zip([None, *piece.blocks], piece.blocks, strict=False):
        if before is not None:
            text += "\n" if before.kind == block.kind and block.kind in ("item", "row") else SEPARATOR
            if place_kind == "page" and isinstance(block.place, int) and block.place != before.place:
                pages.append((len(text), block.place))
        text += block.text
    return Section(text, start, piece.heading, place_kind, piece.place, tuple(pages))


def read_document(path: str | Path, *, characters: int = SECTION_CHARACTERS, reader: DocumentReader | None = None) -> list[Section]:
    """Return the sections of a file; one that cannot be read is a DocumentError.

    `characters` is the length that sections are filled to. A `reader` is a process that serves several files; without one, this file has
    its own.
    """
    if reader is not None:
        return make_sections(reader.read(Path(path)), characters=characters)
    with DocumentReader() as own:
        return make_sections(own.read(Path(path)), characters=characters)


def make_document_records(
    sections: Sequence[Section], *, name: str, file_hash: str, where: str, folder: str | None = None
) -> Iterator[Record]:
    """Yield a record for each section of the file of that name."""
    shared: dict[str, Any] = {"file": name, "file_hash": file_hash, "sections": len(sections), **({"folder": folder} if folder else {})}
    for number, section in enumerate(sections, start=1):
        yield Record(section_id(name, number, len(sections)), section.text, {**shared, "section": number, **section.facts()}, where)


def section_id(name: str, number: int, sections: int) -> str:
    """Return the id of a file's section, which counts from 1.

    >>> section_id("a.pdf", 2, 3), section_id("b.pdf", 1, 1)
    ('a.pdf#2', 'b.pdf')
    """
    return name if sections == 1 else f"{name}#{number}"


def hash_file(path: Path) -> str:
    """Return 32 hexadecimal digits that only this content has."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        while block := handle.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def is_document(path: Path) -> bool:
    """Say whether a file is one that `read_document` reads, by its name."""
    return find_document_format(path) is not None
