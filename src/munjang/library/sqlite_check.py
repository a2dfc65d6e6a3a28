"""Everything in a library file, read and compared with its checksums → what is wrong, in sentences."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from munjang.library.checksums import document_checksum, passage_checksum
from munjang.library.sqlite_files import is_busy
from munjang.library.sqlite_schema import TABLES, is_definition

MOST = 100
"""Findings after which a check stops counting the same kind of thing."""


def findings(connection: sqlite3.Connection, *, dimension: int) -> list[str]:
    """Return what is wrong, one sentence each. The connection must be able to write, and be inside no transaction."""
    steps: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _schema(connection),
        lambda: _structure(connection),
        lambda: _documents(connection),
        lambda: _passages(connection, dimension),
        lambda: _orphans(connection),
        lambda: _words(connection),
    )
    found: list[str] = []
    for step in steps:
        try:
            found.extend(step())
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite names a damaged table, and Python cannot read the name
            if is_busy(error):
                raise
            found.append(f"reading stops: {error}")
    return found


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the tables' definitions, by one letter of which words may be looked for otherwise than they were written."""
    defined = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    for statement in TABLES:
        if not any(is_definition(sql, statement) for sql in defined if isinstance(sql, str)):
            yield f"the definition of {statement.split(' (')[0].removeprefix('CREATE ').lower()} is missing or another one"


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for (message,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if message != "ok":
            yield f"the file's structure: {message}"


def _documents(connection: sqlite3.Connection) -> Iterator[str]:
    for number, *parts, checksum in connection.execute("SELECT number, id, text, metadata, content_hash, checksum FROM documents"):
        if not all(isinstance(part, str) for part in parts) or document_checksum(*parts) != checksum:
            yield f"document number {number} fails its checksum"


def _passages(connection: sqlite3.Connection, dimension: int) -> Iterator[str]:
    sql = """SELECT passages.row, document, start, stop, vector, vectors.checksum, documents.number
             FROM passages LEFT JOIN vectors ON vectors.row = passages.row LEFT JOIN documents ON documents.number = document"""
    for row, document, start, stop, vector, checksum, known in connection.execute(sql):
        if known is None or not all(isinstance(each, int) for each in (document, start, stop)) or not 0 <= start <= stop:
            yield f"passage {row} has no document, or a place that no text has"
        elif not isinstance(vector, bytes) or len(vector) != 4 * dimension:
            yield f"passage {row} has no vector of {dimension} numbers"
        elif passage_checksum(row, document, start, stop, vector) != checksum:
            yield f"the vector of passage {row} fails its checksum"


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    for sql, what in (
        ("SELECT count(*) FROM vectors WHERE row NOT IN (SELECT row FROM passages)", "vectors without a passage"),
        ("SELECT count(*) FROM documents WHERE number NOT IN (SELECT document FROM passages)", "documents without a passage"),
        ("SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT row FROM passages)", "words without a passage"),
        ("SELECT count(*) FROM passages WHERE row NOT IN (SELECT id FROM words_docsize)", "passages without words"),
    ):
        count = connection.execute(sql).fetchone()[0]
        if count:
            yield f"{count:,} {what}"


def _words(connection: sqlite3.Connection) -> Iterator[str]:
    """Let FTS5 compare its index with its texts; it asks for this through an INSERT that writes nothing."""
    try:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    except sqlite3.Error as error:
        if is_busy(error):
            raise
        yield f"the index of words: {error}"
