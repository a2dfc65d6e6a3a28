"""What the commands about libraries share: their argument, opening one with the right model, and reading files and folders to add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from munjang.cli.row_files import Columns
from munjang.errors import FolderError, InputError, UsageError, shown

if TYPE_CHECKING:
    from munjang.cli.watched import Watched
    from munjang.library.library import Library
    from munjang.text.records import Record
    from munjang.text.rows import BadLines

WHOLE_FILES = (".txt", ".md")
"""In a folder, a file of these is one document."""

TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", *WHOLE_FILES)
SQLITE = b"SQLite format 3\0"
"""How a library's file begins."""


def _no_table(library: str) -> str:
    """Refuse a file of texts in the place of a library."""
    path = Path(library or "")
    if path.suffix.lower() in TABLES and path.is_file() and not _begins_like_sqlite(path):
        made = path.with_suffix(".db")
        raise UsageError(f"{path}: is a file of texts, expected a library\n  munjang add {made} {path} makes one")
    return library


def _begins_like_sqlite(path: Path) -> bool:
    with path.open("rb") as handle:
        return handle.read(len(SQLITE)) == SQLITE


LibraryArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="LIBRARY", help="The library's file; or postgresql://… for one on a server.", callback=_no_table)
]


def open_with_model(
    path: str,
    model: str | None,
    *,
    compute: Literal["float32", "int8"],
    create: bool = False,
    passage_characters: int | None = None,
) -> Library:
    """Open a library with the model named, else with the one it was built with, else, for a new one, with the default model."""
    from munjang.cli.watched import load_for_search
    from munjang.library.library import Library

    queries, documents = load_for_search(model or own_model(path), compute=compute)
    return Library.open(
        path,
        documents,
        query_encoder=queries,
        create=create,
        passage_characters=passage_characters or passage_length(documents),
    )


def passage_length(encoder: Watched) -> int:
    """Return how many characters the model reads at once, roughly."""
    from munjang.library.opening import characters_for

    return characters_for(encoder.model.max_length)


def read_all(files: Sequence[str], columns: Columns, *, bad: BadLines | None) -> Iterator[Record]:
    """Yield the records of files and folders, one after the other."""
    from munjang.text.readers import read_texts

    for name in files:
        if name != "-" and Path(name).is_dir():
            yield from _folder(Path(name), columns, bad)
            continue
        yield from read_texts(
            name,
            text_column=columns.text,
            id_column=columns.id,
            format=columns.format,
            quoting=columns.quoting,
            encoding=columns.encoding,
            bad=bad,
        )


def _folder(folder: Path, columns: Columns, bad: BadLines | None) -> Iterator[Record]:
    from munjang.text.readers import format_of, read_texts
    from munjang.text.records import Record

    found = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() in WHOLE_FILES:
            found += 1
            yield Record(name, _text_of(path, columns.encoding), {"file": name}, str(path))
            continue
        try:
            format_of(path)
        except UsageError:
            continue
        found += 1
        yield from read_texts(
            path, text_column=columns.text, id_column=columns.id, quoting=columns.quoting, encoding=columns.encoding, bad=bad
        )
    if not found:
        raise InputError(f"{folder}: holds no file that can be added, expected txt, md, csv, tsv, jsonl, json or parquet")


def _text_of(path: Path, encoding: str) -> str:
    try:
        return path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start:,} is not {shown(encoding)}\n  say the encoding with --encoding") from None


def own_model(path: str) -> str | None:
    """Return the name of the model that an existing library was built with, if it can be found by that name."""
    from munjang.library.library import Library
    from munjang.models.registry import resolve

    try:
        with Library.open(path, create=False) as library:
            name = library.info().model
    except InputError:
        return None
    try:
        return str(resolve(name).path)
    except FolderError:
        return None
