"""Changes → rows of a library file, inside the caller's transaction.

`tidy_words` keeps the word index readable. FTS5 keeps its index in levels. Every 'optimize' puts what it merges one or two levels higher,
without a bound in SQLite 3.40, which reads indexes of at most 2,000 levels, so after a thousand calls nothing could be found or changed
any more. Here an index of many levels is built anew from its texts, which begins at the lowest again; one that is past being read is
emptied first.

`remove_unused` deletes a file that was made and never written to, if nobody else has it open. The caller holds the writer's lock, so
nobody writes meanwhile and nobody makes a library at the path. That nobody reads is what SQLite says: a connection in exclusive mode is
refused while any other one is open. Whoever opens the file in that moment gets `LibraryGone`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np

from munjang.atomic import sync
from munjang.library.sqlite_files import open_connection, transaction
from munjang.library.sqlite_pages import discard_sums
from munjang.library.sqlite_schema import name_of
from munjang.library.sqlite_tokens import put_codes
from munjang.library.store import Document, Entry, NewMetadata, StoredCodebook, document_checksum, metadata_json, passage_checksum

ENTRIES_AT_ONCE = 500
"""Entries whose rows are written by one statement for each table."""


def put_entries(
    connection: sqlite3.Connection, entries: Sequence[Entry], *, dimension: int, rows: Iterator[int], codebook: StoredCodebook | None = None
) -> None:
    """Write documents of different ids with their passages, numbered from `rows`; older ones with the same ids go."""
    for entry in entries:
        entry.check(dimension)
    delete_documents(connection, [entry.document.id for entry in entries])
    documents, passages, vectors, words = [], [], [], []
    all_codes: list[tuple[int, bytes]] = []
    for number, entry in enumerate(entries, start=_next_number(connection)):
        documents.append(_document_row(number, entry.document))
        codes: Sequence[bytes | None] = entry.token_codes or [None] * len(entry.passages)
        for passage, vector_D, code in zip(entry.passages, entry.vectors_PD, codes, strict=True):
            row, vector = next(rows), np.ascontiguousarray(vector_D, dtype="<f4").tobytes()
            passages.append((row, number, passage.start, passage.stop))
            vectors.append((row, vector, passage_checksum(row, number, passage.start, passage.stop, vector)))
            words.append((row, " ".join(passage.words)))
            if code is not None:
                all_codes.append((row, code))
    connection.executemany(
        "INSERT INTO documents (number, id, text, metadata, content_hash, checksum) VALUES (?, ?, ?, ?, ?, ?)", documents
    )
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", passages)
    connection.executemany("INSERT INTO vectors (row, vector, checksum) VALUES (?, ?, ?)", vectors)
    connection.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", words)
    for row, code in all_codes:
        put_codes(connection, row, code, codebook)


def _next_number(connection: sqlite3.Connection) -> int:
    """Return a number that no document has had."""
    found = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'documents'").fetchone()
    return max(int(found[0]), last_number(connection)) + 1


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


def _document_row(number: int, document: Document) -> tuple[int, str, str, str, str, int]:
    metadata = metadata_json(document.metadata)
    checksum = document_checksum(document.id, document.text, metadata, document.content_hash)
    return number, document.id, document.text, metadata, document.content_hash, checksum


MOST_LEVELS, READABLE_LEVELS = 64, 2_000
_SUMS, _STRUCTURE = 1, 10
"""The rows of `words_data` in which FTS5 writes the lengths of texts and its levels down."""
_SECOND_VERSION = b"\xff\x00\x00\x01"


def tidy_words(connection: sqlite3.Connection) -> None:
    """Merge the index of words into one piece."""
    levels = word_levels(connection)
    if levels > READABLE_LEVELS:
        _empty(connection)
    if levels >= MOST_LEVELS:
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def word_levels(connection: sqlite3.Connection) -> int:
    """Return how many levels the index of words has; 0 where FTS5 says nothing of them."""
    row = connection.execute("SELECT block FROM words_data WHERE id = ?", (_STRUCTURE,)).fetchone()
    record = row[0][4:] if row and isinstance(row[0], bytes) else b""
    levels = 0
    for byte in record.removeprefix(_SECOND_VERSION)[:9]:  # seven bits in each byte, the highest first
        levels = levels << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return levels


def _empty(connection: sqlite3.Connection) -> None:
    """Leave the index as FTS5 makes a new one: its texts stay, and 'rebuild' reads them."""
    with transaction(connection, name_of(connection)):
        connection.execute("DELETE FROM words_data")
        connection.execute("DELETE FROM words_idx")
        connection.executemany("INSERT INTO words_data (id, block) VALUES (?, ?)", [(_SUMS, b""), (_STRUCTURE, bytes(7))])


_FIRST_GENERATION = 1
"""Of a library that nothing was ever written to."""


def remove_unused(path: Path, uuid: str, *, locks: Sequence[Path]) -> bool:
    """Remove the library, SQLite's files beside it and the lock files; say whether that was done."""
    with closing(open_connection(path, write=True)) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        if not _is_unused(connection, uuid):
            return False
        path.unlink()
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    discard_sums(path)
    for lock in locks:
        lock.unlink(missing_ok=True)
    sync(path.absolute().parent)
    return True


def _is_unused(connection: sqlite3.Connection, uuid: str) -> bool:
    found = connection.execute("SELECT uuid, generation FROM settings").fetchone()
    documents = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    return tuple(found or ()) == (uuid, _FIRST_GENERATION) and documents == 0
