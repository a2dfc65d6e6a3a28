"""Changes → rows in PostgreSQL, inside the caller's transaction; many documents go in by COPY."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

_DOCUMENTS = {
    "number": "int8",
    "key": "bytea",
    "id": "text",
    "text": "text",
    "metadata": "text",
    "content_hash": "text",
    "checksum": "int8",
}
_PASSAGES = {
    '"row"': "int8",
    "document": "int8",
    "start": "int4",
    "stop": "int4",
    "words": "text[]",
    "length": "int4",
    "vector": "bytea",  # sent as it is, which pgvector reads
    "checksum": "int8",
}
"""Columns and the types that they are sent as."""

BY_ID = "documents.key = ANY(%s::bytea[])"
"""Documents with one of these ids, which are bound through `keys_of`."""


class Writing:
    """Numbers given out, and changes of one kind that wait to be written together, in one transaction."""

    word_columns: Mapping[str, str] = {"word": "text", '"row"': "int8", "count": "int4"}

    def __init__(
        self, connection: psycopg.Connection[Any], *, dimension: int, microseconds: int, codebook: StoredCodebook | None = None
    ) -> None:
        last_row, self.before = run(connection, "SELECT last_row, last_number FROM settings").fetchone()
        self.connection, self.dimension, self.codebook = connection, dimension, codebook
        # Beginning at the time keeps the numbers apart from those that a restored copy of this database may have used.
        self.rows, self.numbers = count(max(last_row + 1, microseconds)), count(self.before + 1)
        self.last = (last_row, self.before)
        self._waiting: dict[str | int, Change] = {}

    def take(self, changes: Iterable[Change]) -> None:
        """Write all changes in their order."""
        kind: type[Change] | None = None
        for change in changes:
            if type(change) is not kind or len(self._waiting) >= TOGETHER:
                self._flush()
            kind = type(change)
            if isinstance(change, Entry):
                _check(change, self.dimension)
            key = _name_change(change)
            self._waiting.pop(key, None)
            self._waiting[key] = change
        self._flush()

    def keep_numbers(self) -> None:
        """Write down which numbers were used, for the next one."""
        run(self.connection, "UPDATE settings SET last_row = %s, last_number = %s", self.last)

    def _flush(self) -> None:
        waiting, self._waiting = list(self._waiting.values()), {}
        match waiting:
            case []:
                return
            case [Entry(), *_]:
                self.put_entries([each for each in waiting if isinstance(each, Entry)])
            case [NewMetadata(), *_]:
                self.put_metadata([each for each in waiting if isinstance(each, NewMetadata)])
            case [NewTokenCodes(), *_]:
                codes = {each.row: each.codes for each in waiting if isinstance(each, NewTokenCodes)}
                self.put_codes(codes, self.find_documents(list(codes)))
            case [*_, NewWeights(weights)]:
                self.put_weights(weights)

    def put_entries(self, entries: Sequence[Entry], rows: Mapping[str, Sequence[int]] | None = None) -> None:
        """Replace documents; with `rows`, their passages get these numbers and no new ones."""
        self.drop([entry.document.id for entry in entries])
        numbered = [(next(self.numbers), entry) for entry in entries]
        given = (row for each in entries for row in rows[each.document.id]) if rows is not None else self.rows
        passages = [
            (next(given), number, passage, np.ascontiguousarray(vector_D, dtype="<f4"))
            for number, entry in numbered
            for passage, vector_D in zip(entry.passages, entry.vectors_PD, strict=True)
        ]
        self.last = self.last[0] if rows is not None else passages[-1][0], numbered[-1][0]
        copy_rows(self.connection, "documents", _DOCUMENTS, map(_document_row, numbered))
        copy_rows(self.connection, "passages", _PASSAGES, map(_passage_row, passages))
        words = (
            {"word": word, '"row"': row, "document": number, "count": times}
            for row, number, passage, _ in passages
            for word, times in word_counts(passage.words).items()
        )
        listed = (tuple(each[name] for name in self.word_columns) for each in words)
        copy_rows(self.connection, "words", self.word_columns, sorted(listed))  # neighbours in the index
        every_code = (code for _, entry in numbered for code in entry.token_codes or [None] * len(entry.passages))
        coded = {row: code for (row, *_), code in zip(passages, every_code, strict=True) if code is not None}
        self.put_codes(coded, {row: number for row, number, *_ in passages})

    def put_metadata(self, changes: Sequence[NewMetadata]) -> None:
        """Replace the metadata of those of these documents that exist."""
        wanted = {change.id: metadata_json(change.metadata) for change in changes}
        sql = f"SELECT number, id, text, content_hash FROM documents WHERE {BY_ID}"  # noqa: S608
        found = run(self.connection, sql, (keys_of(list(wanted)),)).fetchall()
        with self.connection.cursor() as cursor:
            cursor.executemany(
                b"UPDATE documents SET metadata = %s, checksum = %s WHERE number = %s",
                [(wanted[id], document_checksum(id, text, wanted[id], hashed), number) for number, id, text, hashed in found],
            )

    def put_codes(self, codes: Mapping[int, bytes], documents: Mapping[int, int]) -> None:
        """Write token codes by row; those of rows that are not among the documents' are left alone."""
        put_codes(self.connection, {row: code for row, code in codes.items() if row in documents}, self.codebook)

    def put_weights(self, weights: str | None) -> None:
        """Replace the weights of searches."""
        run(self.connection, "UPDATE settings SET weights = %s", (weights,))

    def drop(self, ids: Sequence[str]) -> None:
        """Drop documents, to put others in their place."""
        delete_documents(self.connection, ids)

    def find_documents(self, rows: Sequence[int]) -> dict[int, int]:
        """Return the documents of those of these rows that exist."""
        return dict(run(self.connection, 'SELECT "row", document FROM passages WHERE "row" = ANY(%s)', (list(rows),)).fetchall())


def _name_change(change: Change) -> str | int:
    """Return what a later change of the same kind replaces it by."""
    match change:
        case Entry(document):
            return document.id
        case NewMetadata(id):
            return id
        case NewTokenCodes(row):
            return row
        case NewWeights():
            return 0


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


def copy_rows(connection: psycopg.Connection[Any], table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Load rows into the columns of a table."""
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.copy(sql.encode()) as copy:
        copy.set_types(list(columns.values()))
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
    sent = struct.pack("!HH", len(vector_D), 0) + vector_D.astype(">f4").tobytes()
    return row, document, passage.start, passage.stop, words, len(words), sent, checksum


def vector_text(vector_D: Any) -> str:
    """Return a vector as pgvector reads it; every float32 comes back as it was."""
    return "[" + ",".join(map(repr, vector_D.tolist())) + "]"


def _check(entry: Entry, dimension: int) -> None:
    entry.check(dimension)
    texts = (entry.document.id, entry.document.text, *(word for passage in entry.passages for word in passage.words))
    if any("\x00" in text for text in texts):
        raise UsageError(f"document {quote(entry.document.id)}: holds NUL, which PostgreSQL cannot store\n  take it out of the text")
