"""The tables of a library file, how a new file gets them, and how a foreign file is told apart.

settings    one row: uuid, generation (grows with every commit), and what all vectors have in common; compute and pooling are missing in
            files of Munjang 0.1
documents   number, id, text, metadata (JSON), content hash, checksum
passages    row (never used twice), the document's number, start and stop in its text
vectors     row, little-endian float32, checksum over passage and vector
words       FTS5 over each passage's words, by row
"""

from __future__ import annotations

import sqlite3
import uuid
from dataclasses import replace
from pathlib import Path

from munjang.atomic import sync
from munjang.errors import DamagedFile, InputError, quote
from munjang.library.sqlite_files import PAGE_BYTES, LibraryConnection, open_connection, transaction, translate_errors
from munjang.library.store import Settings
from munjang.library.words import is_known

APPLICATION = 0x4D4A4C42  # "MJLB"
FORMAT = 1
_SMALLEST = 512  # bytes of an SQLite file

TABLES = (
    "CREATE TABLE settings (one INTEGER PRIMARY KEY CHECK (one = 1), uuid TEXT NOT NULL, generation INTEGER NOT NULL, model TEXT NOT NULL,"
    " fingerprint TEXT NOT NULL, dimension INTEGER NOT NULL, analyser TEXT NOT NULL, passage_characters INTEGER NOT NULL,"
    " passage_overlap INTEGER NOT NULL, compute TEXT, pooling TEXT)",
    "CREATE TABLE documents (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, metadata TEXT NOT NULL,"
    " content_hash TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE passages (row INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES documents (number),"
    " start INTEGER NOT NULL, stop INTEGER NOT NULL)",
    "CREATE INDEX passages_of ON passages (document)",
    "CREATE TABLE vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'unicode61 remove_diacritics 0')",
)
_COLUMNS = "model, fingerprint, dimension, analyser, passage_characters, passage_overlap, compute, pooling"
_MARKS = ", ".join("?" * len(_COLUMNS.split(", ")))
_TYPES = (str, str, int, str, int, int)
_LATER_COLUMNS = ("compute", "pooling")
"""Columns that Munjang 0.1 did not write; they are added when the settings are replaced."""
_WEIGHTS = "weights"
"""A column that a library gets when its searches are tuned."""


def is_definition(statement: str, of: str) -> bool:
    """Say whether a table is defined as in TABLES, or as Munjang 0.1 defined it."""
    known = (of, of.replace("".join(f", {name} TEXT" for name in _LATER_COLUMNS), ""))
    return statement in known or statement.replace(f", {_WEIGHTS} TEXT", "") in known


def create(path: Path, settings: Settings, *, name: str) -> bool:
    """Give a file that does not exist, or is empty, its tables; leave a library as it is. The caller holds the writer's lock.

    Returns whether there was no file before.
    """
    missing = not path.exists()
    fresh = not path.exists() or path.stat().st_size == 0
    if fresh:
        path.touch()
    elif path.stat().st_size < _SMALLEST:  # SQLite takes a file of one byte for an empty database
        raise DamagedFile(
            f"{name}: has {path.stat().st_size} bytes, less than any library; the file was truncated\n  restore it from a copy"
        )
    connection = open_connection(path, write=True, name=name)
    try:
        with translate_errors(name):
            if fresh:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            if _is_empty(connection):
                connection.execute("PRAGMA journal_mode = WAL")
                _fill(connection, name, settings)
    finally:
        connection.close()
    if fresh:
        sync(path.absolute().parent)
    return missing


def check_is_library(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a file that is no library, or one of a later Munjang."""
    with translate_errors(name):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise InputError(f"{name}: is a database, but not a Munjang library\n  name another file, or make a new one with munjang add")
    if version != FORMAT:
        raise InputError(f"{name}: has format {version}, this Munjang reads format {FORMAT}\n  use the Munjang that wrote it")
    read_settings(connection)  # refuses what is damaged


def read_settings(connection: sqlite3.Connection) -> Settings:
    """Return what all vectors have in common."""
    found = connection.execute("SELECT * FROM settings")
    row = found.fetchone()
    named = dict(zip((column[0] for column in found.description), row or (), strict=False))
    values = [named.get(name) for name in _COLUMNS.split(", ")]
    whole = tuple(map(type, values[: len(_TYPES)])) == _TYPES and all(isinstance(each, str | None) for each in values[len(_TYPES) :])
    if not whole:  # a damaged page can hold what the table forbids
        raise DamagedFile(f"{name_of(connection)}: the library's settings are missing or damaged\n  restore it from a copy")
    weights = named.get(_WEIGHTS)
    settings = replace(Settings(*values), weights=weights if isinstance(weights, str) else None)  # type: ignore[arg-type]
    if not is_known(settings.analyser):  # words would be looked for otherwise than they were written
        raise DamagedFile(f"{name_of(connection)}: the word analysis {quote(settings.analyser)} is unknown\n  restore it from a copy")
    return settings


def name_of(connection: sqlite3.Connection) -> str:
    """Return what people call the library that a connection reads."""
    return connection.library if isinstance(connection, LibraryConnection) else "the library"


def write_settings(connection: sqlite3.Connection, settings: Settings) -> None:
    """Replace the settings, inside the caller's transaction."""
    known = {name for _, name, *_ in connection.execute("PRAGMA table_info(settings)")}
    for name in _LATER_COLUMNS:
        if name not in known:
            connection.execute(f"ALTER TABLE settings ADD COLUMN {name} TEXT")
    connection.execute(f"UPDATE settings SET ({_COLUMNS}) = ({_MARKS})", _values(settings))  # noqa: S608
    if _has_weights(connection):
        write_weights(connection, settings.weights)


def write_weights(connection: sqlite3.Connection, weights: str | None) -> None:
    """Replace the weights of searches, inside the caller's transaction."""
    if not _has_weights(connection):
        connection.execute(f"ALTER TABLE settings ADD COLUMN {_WEIGHTS} TEXT")
    connection.execute("UPDATE settings SET weights = ?", (weights,))


def _has_weights(connection: sqlite3.Connection) -> bool:
    return any(name == _WEIGHTS for _, name, *_ in connection.execute("PRAGMA table_info(settings)"))


def _fill(connection: sqlite3.Connection, name: str, settings: Settings) -> None:
    with transaction(connection, name):
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(
            f"INSERT INTO settings (one, uuid, generation, {_COLUMNS}) VALUES (1, ?, 1, {_MARKS})",  # noqa: S608
            (uuid.uuid4().hex, *_values(settings)),
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _values(settings: Settings) -> list[str | int | None]:
    return [getattr(settings, name) for name in _COLUMNS.split(", ")]


def _is_empty(connection: sqlite3.Connection) -> bool:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]) == 0
