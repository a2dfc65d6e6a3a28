"""What the commands about libraries share: their argument, opening one with the right model, and reading files and folders to add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar, get_args

import typer

from munjang.cli.load_model import load_model
from munjang.cli.options import Columns
from munjang.errors import FolderError, InputError, UsageError, quote
from munjang.file_lock import PATIENCE
from munjang.file_lock import PatienceOption as PatienceOption
from munjang.models.registry import resolve
from munjang.text.readers import find_format
from munjang.text.records import BadLines, Record
from munjang.types import DEFAULT_COMPUTE, Compute, Pooling

if TYPE_CHECKING:
    from munjang.cli.document_files import DocumentIntake
    from munjang.library.library import Library
    from munjang.library.store import Settings
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.text.korean import Analyser
    from munjang.text.pos_analysers import PosName
    from munjang.vectors.maxsim import TokenFormat

WHOLE_FILES = (".txt", ".md")
"""In a folder, a file of these is one document."""

TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", *WHOLE_FILES)
COMPUTES: tuple[Compute, ...] = get_args(Compute)
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
ADDRESSES = ("postgresql://", "postgres://")
Word = TypeVar("Word", bound=str)
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
    compute: Compute | None,
    create: bool = False,
    passage_characters: int | None = None,
    new: Settings | None = None,
    patience: float = PATIENCE,
    token_vectors: TokenFormat | None = None,
    distributed: bool = False,
    analyser: Analyser | PosName | None = None,
) -> Library:
    """Open a library with the model named, else with the one it was built with, else, for a new one, with the default model.

    What is not said of the model, the library says: how it computes, and with which pooling; for a new library, `new` says it.
    """
    from munjang.library.library import Library

    found = None
    try:
        found = Library.open(path, create=False, patience=patience, distributed=distributed)
    except InputError:  # where one may be made, whoever makes it says what stands in the way
        if not create:
            raise
    try:
        encoder = load_for(path, new if found is None else found.store.settings(), model, compute).with_prompt(progress=True)
        if found is not None:
            found.use_encoder(encoder)
            if token_vectors is not None:
                found.keep_token_vectors(token_vectors)
            return found
    except BaseException:
        if found is not None:
            found.close()
        raise
    return Library.open(
        path,
        encoder,
        create=True,
        passage_characters=passage_characters,
        patience=patience,
        token_vectors=token_vectors,
        distributed=distributed,
        analyser=analyser,
    )


def load_for(path: str, settings: Settings | None, model: str | None, compute: Compute | None) -> SentenceEncoder:
    """Load the model named as the library at `path` would have it, else the library's own; where there is no library, the default model."""
    if settings is None:
        return load_model(model, compute=compute or DEFAULT_COMPUTE)
    name = model or own_model(path, settings)
    pooling = _pick_known(settings.pooling, POOLINGS) if resolve(name).name == settings.model else None
    return load_model(name, compute=compute or _pick_known(settings.compute, COMPUTES), pooling=pooling, made=settings.fingerprint)


def read_all(files: Sequence[str], columns: Columns, *, bad: BadLines | None, intake: DocumentIntake) -> Iterator[Record]:
    """Yield the records of files and folders, one after the other; `intake` reads those that are documents."""
    from munjang.cli.document_files import takes_document

    for name in files:
        path = Path(name)
        if name != "-" and path.is_dir():
            yield from _folder(path, columns, bad, intake)
        elif name != "-" and columns.format is None and path.is_file() and takes_document(path):
            yield from intake.records(path, path.name)
        else:
            yield from columns.read(name, bad=bad)


def _folder(folder: Path, columns: Columns, bad: BadLines | None, intake: DocumentIntake) -> Iterator[Record]:
    from munjang.cli.document_files import folder_key, list_folder, takes_document

    found, key = 0, folder_key(folder)
    for path, name in list_folder(folder):
        if takes_document(path):
            found += 1
            yield from intake.records(path, name, key)
            continue
        if path.suffix.lower() in WHOLE_FILES:
            found += 1
            yield Record(name, _text_of(path, columns.encoding), {"file": name, "folder": key}, str(path))
            continue
        try:
            find_format(path)
        except UsageError:
            continue
        found += 1
        yield from replace(columns, format=None).read(path, bad=bad)
    if not found:
        expected = "txt, md, csv, tsv, jsonl, json or parquet, or documents such as pdf"
        raise InputError(f"{folder}: holds no file that can be added, expected {expected}")


def _text_of(path: Path, encoding: str) -> str:
    try:
        return path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start:,} is not {quote(encoding)}\n  give the encoding with --encoding") from None


def own_model(path: str, settings: Settings) -> str | None:
    """Return the name by which the model that a library was built with is found, None for the default model; never guess another."""

    try:
        if resolve().name == settings.model:
            return None
    except FolderError:  # there is no default model, and perhaps none is needed
        pass
    try:
        return resolve(settings.model).name
    except FolderError:
        raise UsageError(
            f"{path}: was built with the model {quote(settings.model)} ({settings.fingerprint[:12]}), which is not found here by its name\n"
            "  give that model's folder with --model, or re-encode the library with munjang reencode --model"
        ) from None


def _pick_known(said: str | None, names: tuple[Word, ...]) -> Word | None:
    """Return what a library says of itself if it is one of the names; a library of a later Munjang may say others."""
    return next((name for name in names if name == said), None)
