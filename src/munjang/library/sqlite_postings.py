"""The word index of a library file → for one word the passages that hold it, and what it adds to their BM25 scores, as arrays.

FTS5 computes a score for each row that it returns, and looks the length of each passage up. Here the lengths of all passages are read once
a commit, the places of a word as one text that SQLite writes and numpy reads, and the formula is FTS5's own, in the same order of
operations, so the numbers are the same. A word of which it is not certain that the index holds it just as it is written, and an index
whose passages are not those of the library, are left to FTS5.

Shapes: P passages of the library, in the order of their rows; W passages that hold a word.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.library.sqlite_read import parse_integers, quote_words, read_vocabulary
from munjang.library.store import weigh_words
from munjang.types import Ints

K1, B = 1.2, 0.75
"""FTS5's constants."""

MOST_PASSAGES = 8_000_000
"""Passages up to which their rows fit into one text of SQLite's, whose longest has 10⁹ bytes."""

_PLAIN = re.compile("[0-9a-z가-힣\u4e00-\u9fa5]{1,100}")
"""Words that FTS5's tokenizer leaves as they are, in every version of Unicode."""

_LONGEST_VARINT = 9

Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Posting:
    """The passages that hold one word, and what the word adds to their BM25 scores."""

    positions: NDArray[np.int32]
    scores: Doubles


def read_norms(connection: sqlite3.Connection, rows_P: Ints) -> Doubles | None:
    """Return what BM25 adds to a word's frequency in each passage for the passage's length; None where that is left to FTS5."""
    if not 0 < len(rows_P) <= MOST_PASSAGES:
        return None
    lengths, rows = connection.execute("SELECT group_concat(hex(sz), ''), json_group_array(id) FROM words_docsize").fetchone()
    if not np.array_equal(parse_integers(rows), rows_P):
        return None
    words_P = _decode_varints(bytes.fromhex(lengths))
    if len(words_P) != len(rows_P) or not words_P.any():
        return None
    mean = float(words_P.sum()) / len(rows_P)
    return K1 * ((1 - B) + B * words_P.astype(np.float64) / mean)


def read_posting(connection: sqlite3.Connection, word: str, rows_P: Ints, norms_P: Doubles | None) -> Posting:
    """Read the passages that hold a word."""
    if norms_P is None or not _PLAIN.fullmatch(word):
        return _ask_fts5(connection, word, rows_P)
    sql = f"SELECT json_group_array(doc) FROM {read_vocabulary(connection, 'instance')} WHERE term = ?"  # noqa: S608
    rows_W, frequencies_W = np.unique(parse_integers(connection.execute(sql, (word,)).fetchone()[0]), return_counts=True)
    positions_W = np.searchsorted(rows_P, rows_W)
    if len(rows_W) and (positions_W[-1] == len(rows_P) or not np.array_equal(rows_P[positions_W], rows_W)):
        return _ask_fts5(connection, word, rows_P)
    [weight] = weigh_words(len(rows_P), [len(rows_W)])
    scores_W = weight * ((frequencies_W * (K1 + 1)) / (frequencies_W + norms_P[positions_W]))
    return Posting(positions_W.astype(np.int32), scores_W)


def _ask_fts5(connection: sqlite3.Connection, word: str, rows_P: Ints) -> Posting:
    found = connection.execute("SELECT rowid, rank FROM words WHERE words MATCH ?", (quote_words([word])[0],)).fetchall()
    rows = np.array([row for row, _ in found], dtype=np.int64)
    positions = np.searchsorted(rows_P, rows)
    there = np.flatnonzero(positions < len(rows_P))
    there = there[rows_P[positions[there]] == rows[there]]  # all of them, unless the file is damaged
    return Posting(positions[there].astype(np.int32), -np.array([score for _, score in found])[there])


def _decode_varints(data: bytes) -> Ints:
    """Return SQLite's numbers of variable length: seven bits in each byte, the highest first; a byte of 128 and more is not the last.

    >>> _decode_varints(bytes([5, 0x81, 0x00, 127])).tolist()
    [5, 128, 127]
    """
    bytes_B = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(bytes_B < 0x80)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    numbers = np.zeros(len(ends), dtype=np.int64)
    for step in range(min(int((ends - starts).max(initial=-1)) + 1, _LONGEST_VARINT)):
        more = starts + step <= ends
        numbers[more] = numbers[more] << 7 | bytes_B[(starts + step)[more]] & 0x7F
    return numbers
