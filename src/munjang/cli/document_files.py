"""Documents and folders of them → records for a library, and the library in step with a folder.

A document is skipped if the library holds all its sections with the file's hash. A changed one is read again, and sections that it no
longer has are dropped when the new ones are on disk. So whoever is interrupted runs the same command again: what is missing is added, what
is too much goes. A file that cannot be read is named and counted, and its old sections stay.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli.show import note
from munjang.documents.blocks import DocumentError, ScannedDocument
from munjang.documents.read import hash_file, is_document, make_document_records, read_document, section_id
from munjang.documents.reader_process import DocumentReader
from munjang.errors import MissingExtra
from munjang.library.where import parse_where

if TYPE_CHECKING:
    from munjang.library.library import Library
    from munjang.text.records import Record

NAMED_FILES = 20
"""Broken files that are named; the others are counted."""
_BLOCK = 64


@dataclass
class FileCounts:
    """What became of the documents."""

    read: int = 0
    unchanged: int = 0
    broken: int = 0
    scanned: int = 0
    """Broken, because they hold pictures of pages and no text."""
    removed: int = 0
    """Files that are no longer there."""
    first: str | None = field(default=None, repr=False)
    """What the first broken file's error said."""

    @property
    def seen(self) -> int:
        """All that were there."""
        return self.read + self.unchanged + self.broken


class DocumentIntake:
    """Reads documents for one library; after the library has added its records, `drop_stale` removes what they replace."""

    def __init__(self, library: Library, reader: DocumentReader) -> None:
        self._library = library
        self._reader = reader
        self._characters = library.store.settings().passage_characters
        self._stale: list[str] = []
        self._lacks_extra = False
        self.counts = FileCounts()

    def records(self, path: Path, name: str, folder: str | None = None) -> Iterator[Record]:
        """Yield the records of a document, none if the library has it or it cannot be read."""
        try:
            file_hash = hash_file(path)
            if self._has(name, file_hash):
                self.counts.unchanged += 1
                return
            sections = read_document(path, characters=self._characters, reader=self._reader)
        except MissingExtra as error:
            if not self._lacks_extra:
                note(f"documents are left out: {error}")
            self._lacks_extra = True
            self._refuse(path, error, named=False)
            return
        except (DocumentError, OSError) as error:
            self.counts.scanned += isinstance(error, ScannedDocument)
            self._refuse(path, error)
            return
        self.counts.read += 1
        self._stale += self._further_ids(name, len(sections))
        yield from make_document_records(sections, name=name, file_hash=file_hash, where=str(path), folder=folder)

    def drop_stale(self) -> None:
        """Remove sections that changed files no longer have."""
        if self._stale:
            self._library.remove(self._stale)
            self._stale = []

    def prune(self, folder: Path, names: set[str]) -> None:
        """Remove documents that came from a folder and whose files are not among the names."""
        store = self._library.store
        rows = store.rows(parse_where(f"folder = '{folder_key(folder)}'"))
        ids = sorted({place.id for place in store.places(rows).values()})
        gone: dict[str, list[str]] = {}
        for document in self._library.get(ids):
            name = document.metadata.get("file")
            if isinstance(name, str) and name not in names:
                gone.setdefault(name, []).append(document.id)
        if gone:
            self._library.remove([id for each in gone.values() for id in each])
            self.counts.removed += len(gone)

    def _refuse(self, path: Path, error: Exception, *, named: bool = True) -> None:
        self.counts.broken += 1
        message = f"{path}: {error}"
        self.counts.first = self.counts.first or message
        if named and self.counts.broken <= NAMED_FILES:
            note(f"not read: {message}")

    def _has(self, name: str, file_hash: str) -> bool:
        """Say whether the library holds every section of this very file; what it holds beyond them is dropped later."""
        found = self._library.get([name, section_id(name, 1, 2)])
        facts = next((each.metadata for each in found if each.metadata.get("file_hash") == file_hash), None)
        sections = None if facts is None else facts.get("sections")
        if not isinstance(sections, int):
            return False
        ids = [section_id(name, number, sections) for number in range(1, sections + 1)]
        held = self._library.get(ids)
        if len(held) != sections or any(each.metadata.get("file_hash") != file_hash for each in held):
            return False
        self._stale += self._further_ids(name, sections)
        return True

    def _further_ids(self, name: str, sections: int) -> list[str]:
        """Return the ids of sections that the library holds of another version of a file."""
        found = [each.id for each in self._library.get([] if sections == 1 else [name]) if each.metadata.get("file") == name]
        for start in count_from(sections + 1 if sections > 1 else 1, _BLOCK):
            block = self._library.get([f"{name}#{number}" for number in range(start, start + _BLOCK)])
            found += [each.id for each in block if each.metadata.get("file") == name]
            if len(block) < _BLOCK:
                return found
        return found


def list_folder(folder: Path) -> list[tuple[Path, str]]:
    """Return the files below a folder with their names in it, sorted; no hidden ones, and none that lies outside by a link."""
    root = folder.resolve()
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for each in names:
            path = Path(place, each)
            if not each.startswith(".") and path.is_file() and path.resolve().is_relative_to(root):
                files.append((path, path.relative_to(folder).as_posix()))
    return sorted(files)


def folder_key(folder: Path) -> str:
    """Return what the metadata call a folder: its name, and what tells it from others of that name without saying where it lies."""
    path = folder.resolve()
    name = "".join(ch for ch in path.name if ch not in "'\"\\") or "root"
    return f"{name} {hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"


def snapshot(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return size and time of all files named and of those below folders named."""
    paths = [path for name in names for path in ([each for each, _ in list_folder(Path(name))] if Path(name).is_dir() else [Path(name)])]
    found = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def takes_document(path: Path) -> bool:
    """Say whether a file is read as a document: Markdown needs the extra for that, and is one plain text without it."""
    from importlib.util import find_spec

    return is_document(path) and (path.suffix.lower() not in (".md", ".markdown") or find_spec("xberg") is not None)
