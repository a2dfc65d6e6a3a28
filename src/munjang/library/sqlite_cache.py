"""What filters and words select in one commit of a library file, kept in memory until the next commit.

The first filter and the first words of a commit are left to SQLite, unless both come together or the words are frequent: a command that
asks once pays for nothing else. From the second on,

* a filter looks at columns: one pass over the documents reads every passage's value of a metadata key, and a condition is then tested on
  the distinct values alone, by `where.matches`. A key with too many of them, and a document's own id and text, stay with SQLite;
* a word has the list of its passages with their BM25 scores (`sqlite_postings`). The score for several words is the sum of theirs, added
  in the same order as FTS5 adds them, so that both ways give the same numbers.

All of it is read inside the caller's snapshot, and belongs to the generation that this snapshot sees.

Shapes: P passages of the library, in the order of their rows.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from munjang.library.sqlite_postings import Doubles, Posting, read_norms, read_posting
from munjang.library.sqlite_read import distinct_words, read_generation, read_lexical, read_rows, read_word_frequencies
from munjang.library.store import Scored
from munjang.library.where import OWN_KEYS, AllOf, AnyOf, Condition, Not, keys_of, matches
from munjang.library.where_sql import is_plain_key
from munjang.types import Ints

MOST_VALUES = 4_096
"""Distinct values of a key, above which testing them costs as much as asking SQLite."""
MOST_FILTERS = 64
MOST_KEYS = 32
MOST_POSTINGS = 4_000_000
"""Places of words in passages that are kept, twelve bytes each."""

FREQUENT_PART = 0.5
"""Passages of a question's words, each counted for every word, as a part of all: from here on reading lists is faster than FTS5."""

Flags: TypeAlias = NDArray[np.bool_]

Key = TypeVar("Key")
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Column:
    """One metadata key: its distinct values, and which of them each passage has."""

    values: tuple[dict[str, object], ...]
    """Each as metadata with this key alone; empty where the key is missing."""
    codes_P: NDArray[np.int32]


@dataclass
class Commit:
    """What was read of one generation."""

    generation: int
    filters_asked: int = 0
    words_asked: int = 0
    rows_P: Ints | None = None
    norms_P: Doubles | None = None
    has_norms: bool = False
    """Whether they were looked for; FTS5 scores where there are none."""
    columns: dict[str, Column | None] = field(default_factory=dict)
    """None for a key with too many values."""
    selected: dict[Condition, Ints] = field(default_factory=dict)
    postings: dict[str, Posting] = field(default_factory=dict)
    counted: tuple[tuple[str, ...], int, list[int]] | None = None
    """The first question's words, the number of passages, and how many of them hold each word."""


class CommitCache:
    """Answers for the last commit that was asked for; safe from many threads, which at worst read the same thing twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commit = Commit(-1)

    def select(self, connection: sqlite3.Connection, where: Condition) -> Ints:
        """Return the rows of the documents that meet the condition, ascending."""
        commit = self._current(connection)
        known = commit.selected.get(where)
        if known is not None:
            return known
        first = commit.filters_asked == 0
        commit.filters_asked += 1
        mask_P = None if first else self._mask(connection, commit, where)
        rows = read_rows(connection, where) if mask_P is None else self._rows(connection, commit)[mask_P]
        self._keep(commit.selected, where, rows, MOST_FILTERS)
        return rows

    def rows(self, connection: sqlite3.Connection) -> Ints:
        """Return all rows, ascending; nobody may change the array."""
        return self._rows(connection, self._current(connection))

    def rank(self, connection: sqlite3.Connection, words: Sequence[str], k: int, where: Condition | None) -> list[Scored]:
        """Return the k rows that BM25 puts first for any of these words."""
        commit = self._current(connection)
        first = commit.words_asked == 0
        commit.words_asked += 1
        if k < 1 or (
            first and where is None and not self._are_frequent(connection, commit, words)
        ):  # SQLite reads every document for a filter
            return read_lexical(connection, words, k, where)
        rows_P = self._rows(connection, commit)
        scores_P = np.zeros(len(rows_P))
        for word in distinct_words(words):
            posting = self._posting(connection, commit, word)
            scores_P[posting.positions] += posting.scores
        if where is not None:
            allowed_P = np.zeros(len(rows_P), dtype=bool)
            allowed_P[np.searchsorted(rows_P, self.select(connection, where))] = True
            scores_P[~allowed_P] = 0
        best = _find_best(scores_P, k)
        return list(map(Scored, rows_P[best].tolist(), scores_P[best].tolist()))

    def frequencies(self, connection: sqlite3.Connection, words: Sequence[str]) -> tuple[int, list[int]]:
        """Return the number of passages, and how many of them hold each word."""
        commit = self._current(connection)
        distinct = distinct_words(words)
        if commit.words_asked <= 1 and not all(word in commit.postings for word in distinct):
            return self._first_frequencies(connection, commit, distinct)
        postings = (self._posting(connection, commit, word) for word in distinct)
        return len(self._rows(connection, commit)), [len(posting.positions) for posting in postings]

    def _are_frequent(self, connection: sqlite3.Connection, commit: Commit, words: Sequence[str]) -> bool:
        """Say whether FTS5 would take longer to score the passages of these words than it takes to read all lengths."""
        passages, frequencies = self._first_frequencies(connection, commit, distinct_words(words))
        return sum(frequencies) > FREQUENT_PART * passages

    def _first_frequencies(self, connection: sqlite3.Connection, commit: Commit, words: Sequence[str]) -> tuple[int, list[int]]:
        """Count the passages of the first question's words, once."""
        if commit.counted is None or commit.counted[0] != tuple(words):
            commit.counted = (tuple(words), *read_word_frequencies(connection, words))
        _, passages, frequencies = commit.counted
        return passages, frequencies

    def _current(self, connection: sqlite3.Connection) -> Commit:
        generation = read_generation(connection)
        with self._lock:
            if self._commit.generation != generation:
                self._commit = Commit(generation)
            return self._commit

    def _rows(self, connection: sqlite3.Connection, commit: Commit) -> Ints:
        if commit.rows_P is None:
            rows_P = read_rows(connection, None)
            rows_P.flags.writeable = False
            commit.rows_P = rows_P
        return commit.rows_P

    def _norms(self, connection: sqlite3.Connection, commit: Commit) -> Doubles | None:
        if not commit.has_norms:
            commit.norms_P = read_norms(connection, self._rows(connection, commit))
            commit.has_norms = True
        return commit.norms_P

    def _mask(self, connection: sqlite3.Connection, commit: Commit, where: Condition) -> Flags | None:
        """Say of every passage whether its document meets the condition; None where SQLite has to say it."""
        columns = {key: self._column(connection, commit, key) for key in keys_of(where)}
        found = {key: column for key, column in columns.items() if column is not None}
        return _test(where, found, len(self._rows(connection, commit))) if len(found) == len(columns) else None

    def _column(self, connection: sqlite3.Connection, commit: Commit, key: str) -> Column | None:
        if key in OWN_KEYS or not is_plain_key(key):
            return None
        if key in commit.columns:
            return commit.columns[key]
        column = _read_column(connection, key)
        self._keep(commit.columns, key, column, MOST_KEYS)
        return column

    def _posting(self, connection: sqlite3.Connection, commit: Commit, word: str) -> Posting:
        known = commit.postings.get(word)
        if known is None:
            known = read_posting(connection, word, self._rows(connection, commit), self._norms(connection, commit))
            with self._lock:
                commit.postings[word] = known
                while len(commit.postings) > 1 and sum(len(each.positions) for each in commit.postings.values()) > MOST_POSTINGS:
                    commit.postings.pop(next(iter(commit.postings)))
        return known

    def _keep(self, kept: dict[Key, Kept], key: Key, value: Kept, most: int) -> None:
        """Remember a value, and forget the oldest ones beyond so many."""
        with self._lock:
            kept[key] = value
            while len(kept) > most:
                kept.pop(next(iter(kept)))


def _read_column(connection: sqlite3.Connection, key: str) -> Column | None:
    """Read a key's value of every passage, unless there are too many different ones."""
    sql = "SELECT documents.metadata -> ? FROM passages LEFT JOIN documents ON documents.number = passages.document ORDER BY passages.row"
    numbers: dict[str | None, int] = {}
    codes: list[int] = []
    for (value,) in connection.execute(sql, (f'$."{key}"',)):
        codes.append(numbers.setdefault(value, len(numbers)))
        if len(numbers) > MOST_VALUES:
            return None
    values = tuple({} if value is None else {key: json.loads(value)} for value in numbers)
    return Column(values, np.array(codes, dtype=np.int32))


def _test(where: Condition, columns: dict[str, Column], passages: int) -> Flags:
    match where:
        case AllOf(conditions):
            met_P = np.ones(passages, dtype=bool)
            for each in conditions:
                met_P &= _test(each, columns, passages)
            return met_P
        case AnyOf(conditions):
            met_P = np.zeros(passages, dtype=bool)
            for each in conditions:
                met_P |= _test(each, columns, passages)
            return met_P
        case Not(inner):
            return ~_test(inner, columns, passages)
        case _:
            column = columns[where.key]
            return np.array([matches(where, value) for value in column.values], dtype=bool)[column.codes_P]


def _find_best(scores_P: Doubles, k: int) -> Ints:
    """Return the positions of the k highest scores above 0, best first, the lower position first on ties."""
    positions = np.flatnonzero(scores_P)
    if len(positions) > k:
        scores = scores_P[positions]
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, equal = positions[scores > least], positions[scores == least]
        positions = np.concatenate([above, equal[: k - len(above)]])
    return positions[np.lexsort((positions, -scores_P[positions]))]
