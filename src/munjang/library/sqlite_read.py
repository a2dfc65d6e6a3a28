"""Rows of a library file → documents, vectors and scores, each checked before it is handed out.

Every function takes a connection and reads; which commit it sees is the connection's business. A damaged page can hold what its table
forbids, a number where text belongs: the types of values are looked at too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from munjang.errors import DamagedFile
from munjang.library.sqlite_schema import name_of
from munjang.library.sqlite_schema import read_settings as read_settings
from munjang.library.sqlite_tokens import read_codebook as read_codebook
from munjang.library.sqlite_tokens import read_rows_without_codes as read_rows_without_codes
from munjang.library.sqlite_tokens import read_token_codes as read_token_codes
from munjang.library.store import MAX_WORDS, Document, Entry, Passage, Place, Scored, VectorBlock, document_checksum, passage_checksum
from munjang.library.where import Condition
from munjang.library.where_sql import has_key_sqlite, where_sqlite
from munjang.types import Ints, Vectors
from munjang.wording import count

_VECTORS = """
    SELECT passages.row, passages.document, passages.start, passages.stop, vectors.vector, vectors.checksum, documents.id
    FROM passages LEFT JOIN vectors ON vectors.row = passages.row LEFT JOIN documents ON documents.number = passages.document
"""
_VECTOR_TYPES = (int, int, int, int, bytes, int, str)
_DOCUMENTS = "SELECT number, id, text, metadata, content_hash, checksum FROM documents"
_DOCUMENT_TYPES = (int, str, str, str, str, int)
_ROWS_AT_ONCE = 1_000_000


def read_documents(connection: sqlite3.Connection, ids: Sequence[str], name: str) -> dict[str, Document]:
    """Return the documents with these ids."""
    found = connection.execute(f"{_DOCUMENTS} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))  # noqa: S608
    documents = (_document(row, name) for row in found)
    return {document.id: document for document in documents}


def read_entries(connection: sqlite3.Connection, *, dimension: int, block: int, name: str, tokens: bool = False) -> Iterator[list[Entry]]:
    """Yield all documents with passages and vectors, by their number: a document that is replaced gets a new one."""
    after = 0
    while found := connection.execute(f"{_DOCUMENTS} WHERE number > ? ORDER BY number LIMIT ?", (after, block)).fetchall():
        yield [_entry(connection, row, dimension, name, tokens) for row in found]
        after = found[-1][0]


def read_vectors(connection: sqlite3.Connection, *, after: int, dimension: int, block: int, name: str) -> Iterator[VectorBlock]:
    """Yield the vectors of the rows behind `after`."""
    while True:
        found = connection.execute(f"{_VECTORS} WHERE passages.row > ? ORDER BY passages.row LIMIT ?", (after, block)).fetchall()
        if not found:
            return
        yield _vector_block(found, dimension, name)
        after = found[-1][0]


def read_vectors_of(connection: sqlite3.Connection, rows: Sequence[int] | Ints, *, dimension: int, name: str) -> VectorBlock:
    """Return the vectors of these rows."""
    sql = f"{_VECTORS} WHERE passages.row IN (SELECT value FROM json_each(?)) ORDER BY passages.row"  # noqa: S608
    return _vector_block(connection.execute(sql, (_to_json(rows),)).fetchall(), dimension, name)


def read_rows(connection: sqlite3.Connection, where: Condition | None) -> Ints:
    """Return the rows of the documents that meet the condition."""
    if where is None:
        return _read_all_rows(connection)
    sql, values = where_sqlite(where)
    numbers = f"SELECT number FROM documents WHERE {sql}"  # noqa: S608
    return _ints(connection.execute(f"SELECT row FROM passages WHERE document IN ({numbers}) ORDER BY row", values))  # noqa: S608


def read_rows_of(connection: sqlite3.Connection, ids: Sequence[str]) -> Ints:
    """Return the rows of these documents."""
    numbers = "SELECT number FROM documents WHERE id IN (SELECT value FROM json_each(?))"
    sql = f"SELECT row FROM passages WHERE document IN ({numbers}) ORDER BY row"  # noqa: S608
    return _ints(connection.execute(sql, (json.dumps(list(ids)),)))


def read_places(connection: sqlite3.Connection, rows: Sequence[int] | Ints) -> dict[int, Place]:
    """Return where these rows stand."""
    sql = """SELECT passages.row, documents.id, passages.start, passages.stop FROM passages JOIN documents
             ON documents.number = passages.document WHERE passages.row IN (SELECT value FROM json_each(?))"""
    found: dict[int, Place] = {}
    for place in connection.execute(sql, (_to_json(rows),)):
        if tuple(map(type, place)) != (int, str, int, int):
            raise DamagedFile(f"{name_of(connection)}: passage {place[0]} has a position outside its text\n  run munjang check")
        found[place[0]] = Place(*place)
    return found


def read_lexical(connection: sqlite3.Connection, words: Sequence[str], k: int, where: Condition | None) -> list[Scored]:
    """Return the k rows that BM25 puts first for any of these words."""
    query = " OR ".join(quote_words(words))
    if not query or k < 1:
        return []
    condition, values = where_sqlite(where)
    joined = "" if where is None else "JOIN passages ON passages.row = words.rowid JOIN documents ON documents.number = passages.document"
    sql = f"""SELECT words.rowid, words.rank FROM words {joined} WHERE words MATCH ? AND {condition}
              ORDER BY words.rank, words.rowid LIMIT ?"""  # noqa: S608
    return [Scored(row, -score) for row, score in connection.execute(sql, (query, *values, k))]


def read_word_frequencies(connection: sqlite3.Connection, words: Sequence[str]) -> tuple[int, list[int]]:
    """Return the number of passages, and how many of them hold each word."""
    (passages,) = connection.execute("SELECT count(*) FROM words_docsize").fetchone()
    sql = "SELECT (SELECT count(*) FROM words WHERE words MATCH value) FROM json_each(?)"
    return int(passages), [int(count) for (count,) in connection.execute(sql, (json.dumps(quote_words(words)),))]


def read_words_between(connection: sqlite3.Connection, first: str, last: str) -> dict[str, int]:
    """Return the words in a range, and how many passages hold each."""
    sql = f"SELECT term, doc FROM {read_vocabulary(connection, 'row')} WHERE term >= ? AND term < ?"  # noqa: S608
    return dict(connection.execute(sql, (first, last)).fetchall())


def read_vocabulary(connection: sqlite3.Connection, kind: Literal["row", "instance"]) -> str:
    """Return the name of FTS5's table of words: one row for each word, or for each place of a word."""
    name = f"vocabulary_of_{kind}s"
    if not connection.execute("SELECT count(*) FROM temp.sqlite_master WHERE name = ?", (name,)).fetchone()[0]:
        (query_only,) = connection.execute("PRAGMA query_only").fetchone()
        connection.execute("PRAGMA query_only = OFF")  # a view of the index, which stands in the connection and in no file
        try:
            connection.execute(f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab('main', 'words', '{kind}')")
        finally:
            connection.execute(f"PRAGMA query_only = {int(query_only)}")
    return f"temp.{name}"


def read_has_key(connection: sqlite3.Connection, key: str) -> bool:
    """Say whether any document's metadata have this key."""
    sql, values = has_key_sqlite(key)
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM documents WHERE {sql})", values).fetchone()[0])  # noqa: S608


def read_keys(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return keys of the metadata."""
    sql = "SELECT DISTINCT found.key FROM documents, json_each(documents.metadata) AS found LIMIT ?"
    return sorted(str(key) for (key,) in connection.execute(sql, (limit,)))


def read_count(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of documents and of passages."""
    documents, passages = connection.execute("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)").fetchone()
    return int(documents), int(passages)


def read_generation(connection: sqlite3.Connection) -> int:
    """Return the number of the last commit."""
    (generation,) = connection.execute("SELECT generation FROM settings").fetchone() or (None,)
    if type(generation) is not int:
        raise DamagedFile(f"{name_of(connection)}: the number of its last commit is missing or damaged\n  restore it from a copy")
    return generation


def _document(row: tuple[int, str, str, str, str, int], name: str) -> Document:
    _, id, text, metadata, content_hash, checksum = row
    if tuple(map(type, row)) != _DOCUMENT_TYPES or document_checksum(id, text, metadata, content_hash) != checksum:
        raise DamagedFile(f"{name}: document {str(id)[:60]!a} fails its checksum\n  run munjang check, then add the document again")
    return Document(id, text, json.loads(metadata), content_hash)


def _entry(connection: sqlite3.Connection, row: tuple[int, str, str, str, str, int], dimension: int, name: str, tokens: bool) -> Entry:
    number = row[0]
    found = connection.execute(f"{_VECTORS} WHERE passages.document = ? ORDER BY passages.row", (number,)).fetchall()
    sql = "SELECT body FROM words WHERE rowid IN (SELECT row FROM passages WHERE document = ?) ORDER BY rowid"
    words = [tuple(each.split()) for (each,) in connection.execute(sql, (number,)) if isinstance(each, str)]
    if len(words) != len(found):
        raise DamagedFile(f"{name}: a document has {count(len(found), 'passage')} but words for {len(words)}\n  run munjang check")
    passages = tuple(Passage(start, stop, each) for (_, _, start, stop, *_), each in zip(found, words, strict=True))
    codes = read_token_codes(connection, [each[0] for each in found], name) if tokens else {}
    whole = tuple(codes[each[0]] for each in found) if found and len(codes) == len(found) else None
    return Entry(_document(row, name), passages, _vector_block(found, dimension, name).vectors_ND, whole)


def _vector_block(found: list[tuple[int, int, int, int, bytes, int, str]], dimension: int, name: str) -> VectorBlock:
    blobs: list[bytes] = []
    ids: list[str] = []
    for values in found:
        row, document, start, stop, vector, checksum, id = values
        whole = tuple(map(type, values)) == _VECTOR_TYPES and len(vector) == 4 * dimension
        if not whole or passage_checksum(row, document, start, stop, vector) != checksum:
            raise DamagedFile(f"{name}: the vector of passage {row} fails its checksum\n  run munjang check, then add its document again")
        blobs.append(vector)
        ids.append(id)
    vectors_ND: Vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension).astype(np.float32, copy=False)
    return VectorBlock(np.array([each[0] for each in found], dtype=np.int64), tuple(ids), vectors_ND)


def quote_words(words: Sequence[str]) -> list[str]:
    """Return the words as FTS5 reads them literally, once each."""
    return ['"' + word.replace('"', '""') + '"' for word in distinct_words(words)]


def distinct_words(words: Sequence[str]) -> list[str]:
    """Return the words that are looked for, once each."""
    return [word for word in dict.fromkeys(words[:MAX_WORDS]) if word and "\x00" not in word]


def _to_json(rows: Sequence[int] | Ints) -> str:
    return json.dumps([int(row) for row in rows])


def _read_all_rows(connection: sqlite3.Connection) -> Ints:
    """Return all rows: SQLite writes many as one text, since a Python object for each takes three times as long."""
    sql = "SELECT json_group_array(row) FROM (SELECT row FROM passages WHERE row > ? ORDER BY row LIMIT ?)"
    parts: list[Ints] = []
    after = -(2**63)
    while not parts or len(parts[-1]) == _ROWS_AT_ONCE:
        parts.append(parse_integers(connection.execute(sql, (after, _ROWS_AT_ONCE)).fetchone()[0]))
        after = int(parts[-1][-1]) if len(parts[-1]) else after
    return np.concatenate(parts)


def parse_integers(text: str) -> Ints:
    """Return the numbers of a JSON list.

    >>> parse_integers("[3,5]").tolist(), parse_integers("[]").tolist()
    ([3, 5], [])
    """
    return np.fromstring(text[1:-1], dtype=np.int64, sep=",") if len(text) > 2 else np.empty(0, dtype=np.int64)


def _ints(found: sqlite3.Cursor) -> Ints:
    return np.fromiter((row for (row,) in found), dtype=np.int64)
