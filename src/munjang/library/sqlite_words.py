"""The index of words, put in order.

FTS5 keeps its index in levels. Every 'optimize' puts what it merges one or two levels higher, without a bound in SQLite 3.40, which reads
indexes of at most 2,000 levels, so after a thousand calls nothing could be found or changed any more. Here an index of many levels is
built anew from its texts, which begins at the lowest again; one that is past being read is emptied first.
"""

from __future__ import annotations

import sqlite3

from munjang.library.sqlite_files import transaction
from munjang.library.sqlite_schema import path_of

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
    with transaction(connection, path_of(connection)):
        connection.execute("DELETE FROM words_data")
        connection.execute("DELETE FROM words_idx")
        connection.executemany("INSERT INTO words_data (id, block) VALUES (?, ?)", [(_SUMS, b""), (_STRUCTURE, bytes(7))])
