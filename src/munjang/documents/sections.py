"""Blocks → sections: pieces of a file that a library keeps as documents, each with its place.

A section never reaches over a heading, a slide or a sheet, unless the piece before is tiny. It is filled with whole paragraphs up to the
length of a passage; a longer paragraph is a section alone, which the library splits at sentences. Places count characters in the file's
whole text: the sections with an empty line between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from munjang.documents.blocks import FileBlock, ParsedFile, PlaceKind

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
            heading = piece.heading if has_only_headings else _shared(waiting.heading, piece.heading)
            waiting = _Piece(heading, [*waiting.blocks, *piece.blocks])
            continue
        if waiting is not None:
            yield waiting
        waiting = piece
    if waiting is not None:
        yield waiting


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
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
