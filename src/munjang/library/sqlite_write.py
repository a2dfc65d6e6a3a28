"""Changes → rows of a library file, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count
from typing import cast

import numpy as np

from munjang.errors import UsageError, shown
from munjang.library.checksums import document_checksum, passage_checksum
from munjang.library.metadata import metadata_json
from munjang.library.store import Document, Entry, NewMetadata


def put_entry(connection: sqlite3.Connection, entry: Entry, *, dimension: int, rows: Iterator[int]) -> None:
    """Write a document with its passages, numbered from `rows`; an older one with the same id goes."""
    _check(entry, dimension)
    delete_documents(connection, [entry.document.id])
    document = _insert_document(connection, entry.document)
    for passage, vector_D in zip(entry.passages, entry.vectors_PD, strict=True):
        vector = np.ascontiguousarray(vector_D, dtype="<f4").tobytes()
        row = next(rows)
        connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", (row, document, passage.start, passage.stop))
        checksum = passage_checksum(row, document, passage.start, passage.stop, vector)
        connection.execute("INSERT INTO vectors (row, vector, checksum) VALUES (?, ?, ?)", (row, vector, checksum))
        connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (row, " ".join(passage.words)))


def put_metadata(connection: sqlite3.Connection, change: NewMetadata) -> None:
    """Replace the metadata of a document, if it exists."""
    found = connection.execute("SELECT text, content_hash FROM documents WHERE id = ?", (change.id,)).fetchone()
    if found is None:
        return
    metadata = metadata_json(change.metadata)
    checksum = document_checksum(change.id, found[0], metadata, found[1])
    connection.execute("UPDATE documents SET metadata = ?, checksum = ? WHERE id = ?", (metadata, checksum, change.id))


def delete_documents(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Drop documents with all that belongs to them, and return how many there were."""
    found = connection.execute("SELECT number FROM documents WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
    numbers = [number for (number,) in found]
    for number in numbers:
        _delete(connection, number)
    return len(numbers)


def delete_up_to(connection: sqlite3.Connection, number: int) -> None:
    """Drop every document with a number up to this one."""
    for (each,) in connection.execute("SELECT number FROM documents WHERE number <= ?", (number,)).fetchall():
        _delete(connection, each)


def last_number(connection: sqlite3.Connection) -> int:
    """Return the highest number that a document has."""
    return int(connection.execute("SELECT coalesce(max(number), 0) FROM documents").fetchone()[0])


def new_rows(connection: sqlite3.Connection, *, microseconds: int) -> Iterator[int]:
    """Return row numbers greater than any before, beginning at the time.

    The time keeps them apart from those of another history: a library that was restored from a copy goes on with other numbers than it had
    used after the copy was made, so a cache from then cannot pass for one of now.
    """
    used = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'passages'").fetchone()[0]
    return count(max(int(used) + 1, microseconds))


def next_generation(connection: sqlite3.Connection, *, microseconds: int) -> None:
    """Say that this transaction changes something."""
    connection.execute("UPDATE settings SET generation = max(generation + 1, ?)", (microseconds,))


def _delete(connection: sqlite3.Connection, number: int) -> None:
    rows = connection.execute("SELECT row FROM passages WHERE document = ?", (number,)).fetchall()
    connection.executemany("DELETE FROM words WHERE rowid = ?", rows)
    connection.executemany("DELETE FROM vectors WHERE row = ?", rows)
    connection.execute("DELETE FROM passages WHERE document = ?", (number,))
    connection.execute("DELETE FROM documents WHERE number = ?", (number,))


def _insert_document(connection: sqlite3.Connection, document: Document) -> int:
    metadata = metadata_json(document.metadata)
    checksum = document_checksum(document.id, document.text, metadata, document.content_hash)
    cursor = connection.execute(
        "INSERT INTO documents (id, text, metadata, content_hash, checksum) VALUES (?, ?, ?, ?, ?)",
        (document.id, document.text, metadata, document.content_hash, checksum),
    )
    return cast(int, cursor.lastrowid)  # an INSERT has a row


def _check(entry: Entry, dimension: int) -> None:
    expected = (len(entry.passages), dimension)
    if not entry.passages or entry.vectors_PD.shape != expected:
        raise UsageError(f"document {shown(entry.document.id)}: found vectors of shape {entry.vectors_PD.shape}, expected {expected}")
    if not np.isfinite(entry.vectors_PD).all():
        raise UsageError(f"document {shown(entry.document.id)}: its vectors hold NaN or infinity, expected finite numbers")
