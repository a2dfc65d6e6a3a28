"""Files of documents → records for a library: one for each section, with the file and the place in its metadata.

A file of one section has the file's name as id, one of several `name#1`, `name#2` …. The metadata are `file`, `file_hash`, `section`,
`sections`, and what `Section.facts` says; a hit cites them (`library/citations.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from munjang.documents.formats import find_document_format
from munjang.documents.reader_process import DocumentReader
from munjang.documents.sections import SECTION_CHARACTERS, Section, make_sections
from munjang.text.records import Record


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
