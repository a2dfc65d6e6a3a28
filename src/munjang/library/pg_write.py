"""Changes → rows in PostgreSQL, inside the caller's transaction; many documents go in by COPY."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import UsageError, quote
from munjang.library.pg_connections import run
from munjang.library.pg_tokens import put_codes
from munjang.library.store import (
    Change,
    Entry,
    NewMetadata,
    NewTokenCodes,
    NewWeights,
    StoredCodebook,
    document_checksum,
    metadata_json,
    passage_checksum,
)

if TYPE_CHECKING:
    import psycopg

TOGETHER = 1_000
"""Documents that one COPY takes."""

LONGEST_WORD = 200
"""Characters; a longer word is known by its hash, since an index entry must be short."""

BY_ID = "documents.key = ANY(%s::bytea[])"
"""Documents with one of these ids, which are bound through `keys_of`."""


class Writing:
    """Numbers given out, and entries that wait for their COPY, in one transaction."""

    def __init__(
        self, connection: psycopg.Connection[Any], *, dimension: int, microseconds: int, codebook: StoredCodebook | None = None
    ) -> None:
        last_row, self.before = run(connection, "SELECT last_row, last_number FROM settings").fetchone()
        self.connection, self.dimension, self.codebook = connection, dimension, codebook
        # Beginning at the time keeps the numbers apart from those that a restored copy of this database may have used.
        self.rows, self.numbers = count(max(last_row + 1, microseconds)), count(self.before + 1)
        self.last = (last_row, self.before)
        self._waiting: dict[str, Entry] = {}

    def take(self, changes: Iterable[Change]) -> None:
        """Write all changes in their order."""
        for change in changes:
            if isinstance(change, NewMetadata):
                self._flush()
                put_metadata(self.connection, change)
                continue
            if isinstance(change, NewTokenCodes):
                self._flush()
                put_codes(self.connection, [(change.row, change.codes)], self.codebook)
                continue
            if isinstance(change, NewWeights):
                run(self.connection, "UPDATE settings SET weights = %s", (change.weights,))
                continue
            _check(change, self.dimension)
            self._waiting.pop(change.document.id, None)
            self._waiting[change.document.id] = change
            if len(self._waiting) >= TOGETHER:
                self._flush()
        self._flush()
        run(self.connection, "UPDATE settings SET last_row = %s, last_number = %s", self.last)

    def _flush(self) -> None:
        entries, self._waiting = list(self._waiting.values()), {}
        if not entries:
            return
        delete_documents(self.connection, [entry.document.id for entry in entries])
        numbered = [(next(self.numbers), entry) for entry in entries]
        passages = [
            (next(self.rows), number, passage, np.ascontiguousarray(vector_D, dtype="<f4"))
            for number, entry in numbered
            for passage, vector_D in zip(entry.passages, entry.vectors_PD, strict=True)
        ]
        self.last = passages[-1][0], numbered[-1][0]
        _copy(self.connection, "documents (number, key, id, text, metadata, content_hash, checksum)", map(_document_row, numbered))
        _copy(self.connection, 'passages ("row", document, start, stop, words, length, vector, checksum)', map(_passage_row, passages))
        words = ((key, row, times) for row, _, passage, _ in passages for key, times in word_counts(passage.words).items())
        _copy(self.connection, 'words (word, "row", count)', words)
        every_code = (code for _, entry in numbered for code in entry.token_codes or [None] * len(entry.passages))
        coded = [(row, code) for (row, *_), code in zip(passages, every_code, strict=True) if code is not None]
        put_codes(self.connection, coded, self.codebook)


def put_metadata(connection: psycopg.Connection[Any], change: NewMetadata) -> None:
    """Replace the metadata of a document, if it exists."""
    found = run(connection, f"SELECT number, text, content_hash FROM documents WHERE {BY_ID}", (keys_of([change.id]),)).fetchone()  # noqa: S608
    if found is not None:
        metadata = metadata_json(change.metadata)
        checksum = document_checksum(change.id, found[1], metadata, found[2])
        run(connection, "UPDATE documents SET metadata = %s, checksum = %s WHERE number = %s", (metadata, checksum, found[0]))


def delete_documents(connection: psycopg.Connection[Any], ids: Sequence[str]) -> int:
    """Drop documents with all that belongs to them, and return how many there were."""
    return int(run(connection, f"DELETE FROM documents WHERE {BY_ID}", (keys_of(ids),)).rowcount)  # noqa: S608


def keys_of(ids: Sequence[str]) -> list[bytes]:
    """Return the hashes by which ids are found."""
    return [hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest() for id in ids]


def word_counts(words: Iterable[str]) -> dict[str, int]:
    """Return how often each word stands here, by the form in which words are compared.

    >>> word_counts(["Snow", "snow", "눈"])
    {'snow': 2, '눈': 1}
    """
    return dict(Counter(_key(word) for word in words if word and "\x00" not in word))


def _key(word: str) -> str:
    folded = word.casefold()
    return folded if len(folded) <= LONGEST_WORD else "\n" + hashlib.blake2b(folded.encode(), digest_size=16).hexdigest()


def _copy(connection: psycopg.Connection[Any], table: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)


def _document_row(numbered: tuple[int, Entry]) -> tuple[Any, ...]:
    number, entry = numbered
    document, metadata = entry.document, metadata_json(entry.document.metadata)
    checksum = document_checksum(document.id, document.text, metadata, document.content_hash)
    return number, keys_of([document.id])[0], document.id, document.text, metadata, document.content_hash, checksum


def _passage_row(numbered: tuple[int, int, Any, Any]) -> tuple[Any, ...]:
    row, document, passage, vector_D = numbered
    checksum = passage_checksum(row, document, passage.start, passage.stop, vector_D.tobytes())
    words = list(passage.words)
    return row, document, passage.start, passage.stop, words, len(words), vector_text(vector_D), checksum


def vector_text(vector_D: Any) -> str:
    """Return a vector as pgvector reads it; every float32 comes back as it was."""
    return "[" + ",".join(map(repr, vector_D.tolist())) + "]"


def _check(entry: Entry, dimension: int) -> None:
    expected = (len(entry.passages), dimension)
    if not entry.passages or entry.vectors_PD.shape != expected:
        raise UsageError(f"document {quote(entry.document.id)}: found vectors of shape {entry.vectors_PD.shape}, expected {expected}")
    if not np.isfinite(entry.vectors_PD).all():
        raise UsageError(f"document {quote(entry.document.id)}: its vectors hold NaN or infinity, expected finite numbers")
    texts = (entry.document.id, entry.document.text, *(word for passage in entry.passages for word in passage.words))
    if any("\x00" in text for text in texts):
        raise UsageError(f"document {quote(entry.document.id)}: holds NUL, which PostgreSQL cannot store\n  take it out of the text")
