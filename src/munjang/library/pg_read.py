"""Rows in PostgreSQL → documents, vectors and scores, each checked before it is handed out.

Every function takes a connection and reads; which commit it sees is the connection's business. Words are ranked by BM25 as SQLite's FTS5
does it (k1 = 1.2, b = 0.75, a word of more than half of all passages weighs next to nothing), so both stores give the same scores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import DamagedFile, quote
from munjang.library.pg_connections import run
from munjang.library.pg_schema import read_settings as read_settings
from munjang.library.pg_tokens import read_codebook as read_codebook
from munjang.library.pg_tokens import read_rows_without_codes as read_rows_without_codes
from munjang.library.pg_tokens import read_token_codes as read_token_codes
from munjang.library.pg_write import BY_ID, keys_of, vector_text, word_counts
from munjang.library.store import MAX_WORDS, Document, Entry, Passage, Place, Scored, VectorBlock, document_checksum, passage_checksum
from munjang.library.where import Condition
from munjang.library.where_postgres import where_postgres
from munjang.types import Ints, Vectors

if TYPE_CHECKING:
    import psycopg

_DOCUMENTS = "SELECT number, id, text, metadata, content_hash, checksum FROM documents"
_VECTORS = """SELECT passages."row", passages.document, start, stop, vector_send(vector), passages.checksum, documents.id, words
              FROM passages JOIN documents ON documents.number = passages.document"""
_BM25 = """
    WITH size AS (SELECT count(*)::float8 AS n, greatest(avg(length), 1)::float8 AS mean FROM passages),
    asked AS (SELECT word, greatest(ln((n - count(*) + 0.5) / (count(*) + 0.5)), 1e-6)::float8 AS weight
              FROM words, size WHERE word = ANY(%s) GROUP BY word, n)
    SELECT words."row", sum(weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))) AS score
    FROM words JOIN asked USING (word) JOIN passages ON passages."row" = words."row"
    JOIN documents ON documents.number = passages.document, size
    WHERE {condition} GROUP BY words."row" ORDER BY score DESC, words."row" LIMIT %s"""


def read_documents(connection: psycopg.Connection[Any], ids: Sequence[str], name: str) -> dict[str, Document]:
    """Return the documents with these ids."""
    found = run(connection, f"{_DOCUMENTS} WHERE {BY_ID}", (keys_of(ids),))
    documents = (_document(row, name) for row in found)
    return {document.id: document for document in documents}


def read_entries(
    connection: psycopg.Connection[Any], *, dimension: int, block: int, name: str, tokens: bool = False
) -> Iterator[list[Entry]]:
    """Yield all documents with passages and vectors, by their number."""
    after = 0
    while found := run(connection, f"{_DOCUMENTS} WHERE number > %s ORDER BY number LIMIT %s", (after, block)).fetchall():
        numbers = [row[0] for row in found]
        passages: dict[int, list[tuple[Any, ...]]] = {number: [] for number in numbers}
        for row in run(connection, f'{_VECTORS} WHERE passages.document = ANY(%s) ORDER BY passages."row"', (numbers,)):
            passages[row[1]].append(row)
        rows = [row[0] for each in passages.values() for row in each]
        codes = read_token_codes(connection, rows, name) if tokens else {}
        yield [_entry(row, passages[row[0]], dimension, name, codes) for row in found]
        after = numbers[-1]


def read_vectors(connection: psycopg.Connection[Any], *, after: int, dimension: int, block: int, name: str) -> Iterator[VectorBlock]:
    """Yield the vectors of the rows behind `after`."""
    sql = f'{_VECTORS} WHERE passages."row" > %s ORDER BY passages."row" LIMIT %s'
    while found := run(connection, sql, (after, block)).fetchall():
        yield _vector_block(found, dimension, name)
        after = found[-1][0]


def read_vectors_of(connection: psycopg.Connection[Any], rows: Sequence[int] | Ints, *, dimension: int, name: str) -> VectorBlock:
    """Return the vectors of these rows."""
    found = run(connection, f'{_VECTORS} WHERE passages."row" = ANY(%s) ORDER BY passages."row"', (_listed(rows),)).fetchall()
    return _vector_block(found, dimension, name)


def read_rows(connection: psycopg.Connection[Any], where: Condition | None) -> Ints:
    """Return the rows of the documents that meet the condition."""
    sql, values = where_postgres(where)
    joined = 'SELECT "row" FROM passages JOIN documents ON documents.number = passages.document'
    return _ints(run(connection, f'{joined} WHERE {sql} ORDER BY "row"', values or None))


def read_rows_of(connection: psycopg.Connection[Any], ids: Sequence[str]) -> Ints:
    """Return the rows of these documents."""
    joined = 'SELECT "row" FROM passages JOIN documents ON documents.number = passages.document'
    return _ints(run(connection, f'{joined} WHERE {BY_ID} ORDER BY "row"', (keys_of(ids),)))


def read_places(connection: psycopg.Connection[Any], rows: Sequence[int] | Ints) -> dict[int, Place]:
    """Return where these rows stand."""
    sql = """SELECT "row", id, start, stop FROM passages JOIN documents ON documents.number = passages.document
             WHERE "row" = ANY(%s) ORDER BY "row" """
    return {row: Place(row, id, start, stop) for row, id, start, stop in run(connection, sql, (_listed(rows),))}


def read_has_key(connection: psycopg.Connection[Any], key: str) -> bool:
    """Say whether any document's metadata have this key."""
    if "\x00" in key:  # which no text in PostgreSQL holds
        return False
    return bool(run(connection, "SELECT EXISTS (SELECT 1 FROM documents WHERE jsonb_exists(found, %s))", (key,)).fetchone()[0])


def read_keys(connection: psycopg.Connection[Any], limit: int) -> list[str]:
    """Return keys of the metadata."""
    return sorted(key for (key,) in run(connection, "SELECT DISTINCT jsonb_object_keys(found) FROM documents LIMIT %s", (limit,)))


def read_lexical(connection: psycopg.Connection[Any], words: Sequence[str], k: int, where: Condition | None) -> list[Scored]:
    """Return the k rows that BM25 puts first for any of these words."""
    asked = list(word_counts(words[:MAX_WORDS]))
    if not asked or k < 1:
        return []
    condition, values = where_postgres(where)
    found = run(connection, _BM25.format(condition=condition), (asked, *values, k))
    return [Scored(row, float(score)) for row, score in found]


def read_word_frequencies(connection: psycopg.Connection[Any], words: Sequence[str]) -> tuple[int, list[int]]:
    """Return the number of passages, and how many of them hold each word."""
    asked = list(word_counts(words[:MAX_WORDS]))
    found = dict(run(connection, "SELECT word, count(*) FROM words WHERE word = ANY(%s) GROUP BY word", (asked,)).fetchall())
    (passages,) = run(connection, "SELECT count(*) FROM passages").fetchone()
    return int(passages), [int(found.get(word, 0)) for word in asked]


def read_nearest(
    connection: psycopg.Connection[Any], query_D: Vectors, k: int, *, dimension: int, where: Condition | None, exact: bool
) -> list[Scored]:
    """Return the k rows with the highest cosine, inside the caller's transaction; not `exact` lets the index choose."""
    condition, values = where_postgres(where)
    run(connection, f"SET LOCAL enable_indexscan = {'off' if exact else 'on'}")
    run(connection, "SET LOCAL hnsw.iterative_scan = strict_order")
    run(connection, f"SET LOCAL hnsw.ef_search = {min(1_000, max(100, 4 * int(k)))}")
    typed = f"vector({int(dimension)})"
    sql = f"""SELECT "row", vector::{typed} <=> %s::{typed} AS distance
              FROM passages {"" if where is None else "JOIN documents ON documents.number = passages.document"}
              WHERE vector_dims(vector) = {int(dimension)} AND {condition} ORDER BY vector::{typed} <=> %s::{typed} LIMIT %s"""  # noqa: S608
    text = vector_text(query_D)
    found = run(connection, sql, (text, *values, text, k))
    scored = [Scored(row, 0.0 if math.isnan(distance) else 1 - float(distance)) for row, distance in found]
    return sorted(scored, key=lambda each: (-each.score, each.row))


def read_count(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return the number of documents and of passages."""
    documents, passages = run(connection, "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)").fetchone()
    return int(documents), int(passages)


def read_generation(connection: psycopg.Connection[Any]) -> int:
    """Return the number of the last commit."""
    return int(run(connection, "SELECT generation FROM settings").fetchone()[0])


def findings(connection: psycopg.Connection[Any], *, dimension: int) -> Iterator[str]:
    """Yield what is wrong, one sentence each."""
    for number, *parts, checksum in run(connection, _DOCUMENTS):
        if document_checksum(*parts) != checksum:
            yield f"document number {number} fails its checksum"
    after = 0
    while found := run(connection, f'{_VECTORS} WHERE passages."row" > %s ORDER BY passages."row" LIMIT 1000', (after,)).fetchall():
        for each in found:
            if _vector_bytes(each, dimension) is None:
                yield f"the vector of passage {each[0]} fails its checksum"
        after = found[-1][0]
    for sql, what in (
        ("SELECT count(*) FROM documents WHERE number NOT IN (SELECT document FROM passages)", "documents without a passage"),
        (
            """SELECT count(*) FROM passages WHERE length <> coalesce(array_length(words, 1), 0) OR length <
               (SELECT coalesce(sum(words.count), 0) FROM words WHERE words."row" = passages."row")""",
            "passages whose words are not those that were counted",
        ),
    ):
        if count := run(connection, sql).fetchone()[0]:
            yield f"{count:,} {what}"


def _document(row: tuple[Any, ...], name: str) -> Document:
    _, id, text, metadata, content_hash, checksum = row
    if document_checksum(id, text, metadata, content_hash) != checksum:
        raise DamagedFile(f"{name}: document {quote(id)} fails its checksum\n  run munjang check, then add the document again")
    return Document(id, text, json.loads(metadata), content_hash)


def _entry(row: tuple[Any, ...], found: list[tuple[Any, ...]], dimension: int, name: str, codes: dict[int, bytes]) -> Entry:
    passages = tuple(Passage(each[2], each[3], tuple(each[7])) for each in found)
    whole = tuple(codes[each[0]] for each in found) if codes and all(each[0] in codes for each in found) else None
    return Entry(_document(row, name), passages, _vector_block(found, dimension, name).vectors_ND, whole)


def _vector_block(found: list[tuple[Any, ...]], dimension: int, name: str) -> VectorBlock:
    blobs = []
    for each in found:
        vector = _vector_bytes(each, dimension)
        if vector is None:
            raise DamagedFile(
                f"{name}: the vector of passage {each[0]} fails its checksum\n  run munjang check, then add its document again"
            )
        blobs.append(vector)
    vectors_ND: Vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension).astype(np.float32, copy=False)
    return VectorBlock(np.array([each[0] for each in found], dtype=np.int64), tuple(each[6] for each in found), vectors_ND)


def _vector_bytes(each: tuple[Any, ...], dimension: int) -> bytes | None:
    """Return a vector as little-endian float32 if it is whole; pgvector sends a header of four bytes, then big-endian numbers."""
    row, document, start, stop, sent, checksum = each[:6]
    vector = np.frombuffer(sent, dtype=">f4", offset=4).astype("<f4").tobytes()
    whole = len(vector) == 4 * dimension and passage_checksum(row, document, start, stop, vector) == checksum
    return vector if whole else None


def _listed(rows: Sequence[int] | Ints) -> list[int]:
    return [int(row) for row in rows]


def _ints(found: Any) -> Ints:
    return np.fromiter((row for (row,) in found), dtype=np.int64)
