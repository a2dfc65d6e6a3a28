"""Rows in PostgreSQL → documents, vectors and scores, each checked before it is handed out.

Every function takes a connection and reads; which commit it sees is the connection's business. Words are ranked by BM25 as SQLite's FTS5
does it (k1 = 1.2, b = 0.75, a word of more than half of all passages weighs next to nothing), so both stores give the same scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from munjang.errors import DamagedFile, quote
from munjang.library.pg_cluster import PROPAGATE, ClusterReader, same_document
from munjang.library.pg_connections import Executes, run
from munjang.library.pg_filter import JOIN_DOCUMENTS, filter_passages
from munjang.library.pg_index import NearIndex
from munjang.library.pg_schema import read_settings as read_settings
from munjang.library.pg_tokens import read_codebook as read_codebook
from munjang.library.pg_tokens import read_rows_without_codes as read_rows_without_codes
from munjang.library.pg_tokens import read_token_codes as read_token_codes
from munjang.library.pg_write import BY_ID, keys_of, vector_text, word_counts
from munjang.library.store import (
    MAX_WORDS,
    Document,
    Entry,
    Passage,
    Place,
    Scored,
    VectorBlock,
    document_checksum,
    passage_checksum,
    weigh_words,
)
from munjang.library.where import Condition
from munjang.library.where_sql import where_postgres
from munjang.types import Ints, Vectors

_DOCUMENTS = "SELECT number, id, text, metadata, content_hash, checksum FROM documents"
_VECTORS = """SELECT passages."row", passages.document, start, stop, vector_send(vector), passages.checksum, documents.id, words
              FROM passages JOIN documents ON documents.number = passages.document"""
_BM25 = """
    SELECT words."row", sum((%s::float8[])[array_position(%s::text[], word)]
                            * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / %s)) ORDER BY word) AS score
    FROM words JOIN passages ON passages."row" = words."row"{same} {join}
    WHERE word = ANY(%s) AND {condition} GROUP BY passages.document, words."row" ORDER BY score DESC, words."row" LIMIT %s"""


class Lengths(NamedTuple):
    """What BM25 knows of all passages: how many there are, and how many words they have on average."""

    passages: int
    mean: float


def read_documents(connection: Executes, ids: Sequence[str], name: str) -> dict[str, Document]:
    """Return the documents with these ids."""
    found = run(connection, f"{_DOCUMENTS} WHERE {BY_ID}", (keys_of(ids),))
    documents = (_document(row, name) for row in found)
    return {document.id: document for document in documents}


def read_entries(connection: Executes, *, dimension: int, block: int, name: str, tokens: bool = False) -> Iterator[list[Entry]]:
    """Yield all documents with passages and vectors, by their number."""
    after = 0
    while found := run(connection, f"{_DOCUMENTS} WHERE number > %s ORDER BY number LIMIT %s", (after, block)).fetchall():
        yield _entries(connection, found, dimension=dimension, name=name, tokens=tokens)
        after = found[-1][0]


def read_entries_of(connection: Executes, ids: Sequence[str], *, dimension: int, name: str, tokens: bool) -> list[Entry]:
    """Return these documents with passages and vectors, by their number."""
    found = run(connection, f"{_DOCUMENTS} WHERE {BY_ID} ORDER BY number", (keys_of(ids),)).fetchall()
    return _entries(connection, found, dimension=dimension, name=name, tokens=tokens)


def _entries(connection: Executes, found: list[tuple[Any, ...]], *, dimension: int, name: str, tokens: bool) -> list[Entry]:
    numbers = [row[0] for row in found]
    passages: dict[int, list[tuple[Any, ...]]] = {number: [] for number in numbers}
    for row in run(connection, f'{_VECTORS} WHERE passages.document = ANY(%s) ORDER BY passages."row"', (numbers,)):
        passages[row[1]].append(row)
    rows = [row[0] for each in passages.values() for row in each]
    codes = read_token_codes(connection, rows, name) if tokens else {}
    return [_entry(row, passages[row[0]], dimension, name, codes) for row in found]


def read_vectors(connection: Executes, *, after: int, dimension: int, block: int, name: str) -> Iterator[VectorBlock]:
    """Yield the vectors of the rows behind `after`."""
    sql = f'{_VECTORS} WHERE passages."row" > %s ORDER BY passages."row" LIMIT %s'
    while found := run(connection, sql, (after, block)).fetchall():
        yield _vector_block(found, dimension, name)
        after = found[-1][0]


def read_vectors_of(connection: Executes, rows: Sequence[int] | Ints, *, dimension: int, name: str) -> VectorBlock:
    """Return the vectors of these rows."""
    found = run(connection, f'{_VECTORS} WHERE passages."row" = ANY(%s) ORDER BY passages."row"', (_to_list(rows),)).fetchall()
    return _vector_block(found, dimension, name)


def read_rows(connection: Executes, where: Condition | None) -> Ints:
    """Return the rows of the documents that meet the condition."""
    among = filter_passages(connection, where)
    sql = f'SELECT "row" FROM passages {among.join} WHERE {among.condition} ORDER BY "row"'  # noqa: S608
    return _ints(run(connection, sql, among.values or None))


def read_rows_of(connection: Executes, ids: Sequence[str]) -> Ints:
    """Return the rows of these documents."""
    return np.sort(np.array([row for rows in read_rows_by_id(connection, ids).values() for row in rows], dtype=np.int64))


def read_rows_by_id(connection: Executes, ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the rows of each of these documents, in ascending order."""
    joined = 'SELECT id, "row" FROM passages JOIN documents ON documents.number = passages.document'
    found: dict[str, list[int]] = {}
    for id, row in run(connection, f'{joined} WHERE {BY_ID} ORDER BY "row"', (keys_of(ids),)):
        found.setdefault(id, []).append(row)
    return found


def read_places(connection: Executes, rows: Sequence[int] | Ints) -> dict[int, Place]:
    """Return where these rows stand."""
    sql = """SELECT "row", id, start, stop FROM passages JOIN documents ON documents.number = passages.document
             WHERE "row" = ANY(%s) ORDER BY "row" """
    return {row: Place(row, id, start, stop) for row, id, start, stop in run(connection, sql, (_to_list(rows),))}


def read_has_key(connection: Executes, key: str) -> bool:
    """Say whether any document's metadata have this key."""
    if "\x00" in key:  # which no text in PostgreSQL holds
        return False
    return bool(run(connection, "SELECT EXISTS (SELECT 1 FROM documents WHERE jsonb_exists(found, %s))", (key,)).fetchone()[0])


def read_keys(connection: Executes, limit: int) -> list[str]:
    """Return keys of the metadata."""
    return sorted(key for (key,) in run(connection, "SELECT DISTINCT jsonb_object_keys(found) FROM documents LIMIT %s", (limit,)))


def read_lengths(connection: Executes) -> Lengths:
    """Return what BM25 knows of all passages, which takes a look at each of them."""
    return Lengths(*run(connection, "SELECT count(*), greatest(avg(length), 1)::float8 FROM passages").fetchone())


def read_lexical(
    connection: Executes, words: Sequence[str], k: int, where: Condition | None, *, lengths: Lengths | None = None
) -> list[Scored]:
    """Return the k rows that BM25 puts first for any of these words."""
    asked = list(word_counts(words[:MAX_WORDS]))
    if not asked or k < 1:
        return []
    passages, mean = lengths or read_lengths(connection)
    weights = weigh_words(passages, _count_passages(connection, asked))
    join = "" if where is None else JOIN_DOCUMENTS
    condition, values = where_postgres(where)
    sql = _BM25.format(join=join, condition=condition, same=same_document("words", connection))
    return [Scored(row, float(score)) for row, score in run(connection, sql, (weights, asked, mean, asked, *values, k))]


def read_word_frequencies(connection: Executes, words: Sequence[str], *, lengths: Lengths | None = None) -> tuple[int, list[int]]:
    """Return the number of passages, and how many of them hold each word."""
    asked = list(word_counts(words[:MAX_WORDS]))
    return (lengths or read_lengths(connection)).passages, _count_passages(connection, asked)


def _count_passages(connection: Executes, words: list[str]) -> list[int]:
    """Return how many passages hold each word."""
    found = dict(run(connection, "SELECT word, count(*) FROM words WHERE word = ANY(%s) GROUP BY word", (words,)).fetchall())
    return [int(found.get(word, 0)) for word in words]


def read_words_between(connection: Executes, first: str, last: str) -> dict[str, int]:
    """Return the words in a range, and how many passages hold each."""
    sql = "SELECT word, count(*) FROM words WHERE word >= %s AND word < %s GROUP BY word"
    return dict(run(connection, sql, (first, last)).fetchall())


def read_nearest(
    connection: Executes, query_D: Vectors, k: int, *, where: Condition | None, index: NearIndex | None = None
) -> list[Scored]:
    """Return the k rows with the highest cosine, inside the caller's transaction: all are compared, or those that an index proposes."""
    among = filter_passages(connection, where, can_walk=index is not None)
    index = None if among.by_terms else index
    text = vector_text(query_D)
    typed = f"vector({len(query_D)})"
    cosine = f"1 - coalesce(nullif(vector::{typed} <=> %s::{typed}, 'NaN'), 1)"  # a vector of zeros has nothing in common with any
    if index is None:
        order, asked, wanted = 'score DESC, "row"', [text, *among.values], k
    else:
        if isinstance(connection, ClusterReader):
            run(connection, PROPAGATE)
        run(connection, index.settings(k))
        order, asked, wanted = index.order, [text, *among.values, text], index.count_proposals(k)
    sql = f"""SELECT "row", {cosine} AS score
              FROM passages {among.join}
              WHERE vector_dims(vector) = {len(query_D)} AND {among.condition} ORDER BY {order} LIMIT %s"""  # noqa: S608
    scored = [Scored(row, float(score)) for row, score in run(connection, sql, (*asked, wanted))]
    if index is not None and len(scored) < k:
        return read_nearest(connection, query_D, k, where=where)
    return sorted(scored, key=lambda each: (-each.score, each.row))[:k]


def read_count(connection: Executes) -> tuple[int, int]:
    """Return the number of documents and of passages."""
    documents, passages = run(connection, "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)").fetchone()
    return int(documents), int(passages)


def read_bytes(connection: Executes) -> int:
    """Return what the tables of a library on one server take on its disk, with their indexes."""
    sql = """SELECT sum(pg_total_relation_size(pg_class.oid)) FROM pg_class
             WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'settings'::regclass)"""
    return int(run(connection, sql).fetchone()[0])


def read_generation(connection: Executes) -> int:
    """Return the number of the last commit."""
    return int(run(connection, "SELECT generation FROM settings").fetchone()[0])


def findings(connection: Executes, *, dimension: int) -> Iterator[str]:
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
        (
            "SELECT count(*) FROM documents WHERE NOT EXISTS (SELECT 1 FROM passages WHERE passages.document = documents.number)",
            "documents without a passage",
        ),
        (
            f"""SELECT count(*) FROM passages WHERE length <> coalesce(array_length(words, 1), 0) OR length <
                (SELECT coalesce(sum(words.count), 0) FROM words WHERE words."row" = passages."row"{same_document("words", connection)})""",  # noqa: S608
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


def _to_list(rows: Sequence[int] | Ints) -> list[int]:
    return [int(row) for row in rows]


def _ints(found: Any) -> Ints:
    return np.fromiter((row for (row,) in found), dtype=np.int64)
