"""Changes → new documents on the nodes of a cluster, and the step that makes them count (`pg_cluster` says why it is done so)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from munjang.library import pg_read
from munjang.library.pg_cluster import ClusterReader, Range, confirm_commit, find_oldest_reader, read_window, to_second
from munjang.library.pg_connections import roll_back, run
from munjang.library.pg_schema import write_settings
from munjang.library.pg_tokens import check_codes, replace_codebook
from munjang.library.pg_write import BY_ID, Writing, keys_of
from munjang.library.store import NewMetadata, ServerLost, Settings, StoredCodebook

if TYPE_CHECKING:
    import psycopg

LARGEST_NUMBER = 2**63 - 1
OTHER_CODES = -1
"""Stands in `gone` for the token codes of codebooks that the library no longer has."""


class ClusterWriting(Writing):
    """New documents in the transaction of all nodes, and what is to be published when they are there."""

    word_columns: Mapping[str, str] = {"word": "text", '"row"': "int8", "document": "int8", "count": "int4"}

    def __init__(
        self, connection: psycopg.Connection[Any], *, dimension: int, microseconds: int, codebook: StoredCodebook | None, name: str
    ) -> None:
        super().__init__(connection, dimension=dimension, microseconds=microseconds, codebook=codebook)
        self.window, was_broken = read_window(connection)
        self.first = max(self.before + 1, microseconds) if was_broken else self.before + 1
        self.numbers, self.name = count(self.first), name
        self.gone: set[int] = set()
        self.weights: tuple[str | None, ...] = ()

    def put_metadata(self, changes: Sequence[NewMetadata]) -> None:
        """Write documents with other metadata anew; their passages keep their rows."""
        wanted = {change.id: change.metadata for change in changes}
        reader, ids = self._reader(), list(wanted)
        entries = pg_read.read_entries_of(reader, ids, dimension=self.dimension, name=self.name, tokens=self.codebook is not None)
        rows = pg_read.read_rows_by_id(reader, ids)
        changed = [replace(each, document=replace(each.document, metadata=wanted[each.document.id])) for each in entries]
        if changed:
            self.put_entries(changed, rows)

    def put_codes(self, codes: Mapping[int, bytes], documents: Mapping[int, int]) -> None:
        """Write token codes by row, each with the codebook that it belongs to."""
        sql = b"""INSERT INTO token_codes ("row", document, book, codes, checksum) VALUES (%s, %s, %s, %s, %s)
                  ON CONFLICT (document, "row", book) DO UPDATE SET codes = excluded.codes, checksum = excluded.checksum"""
        checked = check_codes({row: code for row, code in codes.items() if row in documents}, self.codebook)
        with self.connection.cursor() as cursor:
            cursor.executemany(sql, [(row, documents[row], _book(self.codebook), code, checksum) for row, code, checksum in checked])

    def put_weights(self, weights: str | None) -> None:
        """Keep weights of searches for `publish`."""
        self.weights = (weights,)

    def drop(self, ids: Sequence[str]) -> None:
        """Let documents be gone from the next generation on; those that were written just now go at once."""
        numbers = {number for (number,) in run(self._reader(), f"SELECT number FROM documents WHERE {BY_ID}", (keys_of(ids),))}  # noqa: S608
        self.gone |= numbers
        own = [number for number in numbers if number >= self.first]
        if own:
            run(self.connection, "DELETE FROM documents WHERE number = ANY(%s)", (own,))

    def find_documents(self, rows: Sequence[int]) -> dict[int, int]:
        """Return the documents of those of these rows that exist."""
        return dict(run(self._reader(), 'SELECT "row", document FROM passages WHERE "row" = ANY(%s)', (list(rows),)).fetchall())

    def publish(self, *, generation: int, settings: Settings | None = None, codebook: StoredCodebook | None = None) -> None:
        """Let what was written count, in the caller's transaction, which touches nothing but the coordinator."""
        generation = max(self.window.generation + 1, generation)
        gone: list[Range] = [(number, number) for number in sorted(self.gone)]
        ranges = list(self.window.ranges)
        if settings is not None:
            write_settings(self.connection, settings)
            run(self.connection, "DELETE FROM token_codebook")
            gone, ranges = [*gone, *ranges], []
        if codebook is not None and replace_codebook(self.connection, codebook):
            gone.append((OTHER_CODES, OTHER_CODES))
        if self.last[1] >= self.first:
            follows = bool(ranges) and ranges[-1][1] == self.first - 1
            ranges[len(ranges) - follows :] = [(ranges[-1][0] if follows else self.first, self.last[1])]
        if self.weights:
            super().put_weights(self.weights[0])
        with self.connection.cursor() as cursor:
            cursor.executemany(b"INSERT INTO gone VALUES (%s, %s, %s)", [(first, last, generation) for first, last in gone])
        sql = "UPDATE settings SET generation = %s, last_row = %s, last_number = %s, visible = %s, pending = false"
        run(self.connection, sql, (generation, self.last[0], max(self.last[1], self.first - 1), json.dumps(ranges)))

    def _reader(self) -> ClusterReader:
        """Return a reader that also sees what this transaction wrote, and not what it dropped."""
        ranges = (*self.window.ranges, (self.first, LARGEST_NUMBER))
        return ClusterReader(self.connection, replace(self.window, ranges=ranges, gone=(*self.window.gone, *sorted(self.gone))))


def publish_without(connection: psycopg.Connection[Any], ids: Sequence[str], microseconds: int) -> int:
    """Let documents be gone, in the caller's transaction, and return how many there were."""
    writing = ClusterWriting(connection, dimension=0, microseconds=microseconds, codebook=None, name="")
    writing.drop(ids)
    writing.publish(generation=microseconds)
    return len(writing.gone)


def mark_pending(connection: psycopg.Connection[Any]) -> None:
    """Write down that documents are about to be written; the log keeps this before whatever follows, so nobody waits for the disk."""
    with connection.transaction():
        run(connection, "SET LOCAL synchronous_commit = off")
        run(connection, "UPDATE settings SET pending = true")


def delete_gone(connection: psycopg.Connection[Any], schema: str) -> None:
    """Delete what is gone and no reader needs any more; what cannot be deleted now is left for the next time."""
    import psycopg

    try:
        if run(connection, "SELECT NOT EXISTS (SELECT 1 FROM gone)").fetchone()[0]:
            return
        oldest = find_oldest_reader(connection, schema)
        found = run(connection, "SELECT first, last, generation FROM gone ORDER BY generation, first").fetchall()
        ready = [row for row in found if oldest is not None and to_second(row[2]) < oldest]
        if not ready:
            return
        numbers = [first for first, last, _ in ready if first == last != OTHER_CODES]
        if numbers:
            run(connection, "DELETE FROM documents WHERE number = ANY(%s)", (numbers,))
        for first, last, _ in ready:
            if first < last:
                run(connection, "DELETE FROM documents WHERE number BETWEEN %s AND %s", (first, last))
        if any(first == OTHER_CODES for first, *_ in ready):
            book = pg_read.read_codebook(connection)
            run(connection, "DELETE FROM token_codes WHERE book <> %s", (_book(book),))
        confirm_commit(connection, schema)  # before that, a node may still show them
        run(connection, "DELETE FROM gone WHERE generation <= %s", (ready[-1][2],))
    except (psycopg.Error, ServerLost):
        roll_back(connection)


def delete_left_over(connection: psycopg.Connection[Any]) -> None:
    """Delete documents that a change left behind which was never published; the caller is the writer, so there is no other change."""
    window, _ = read_window(connection)
    kept = [(first, last) for first, last in run(connection, "SELECT first, last FROM gone WHERE first >= 0")]
    inside = replace(window, ranges=(*window.ranges, *kept), gone=()).condition("number")
    run(connection, f"DELETE FROM documents WHERE NOT {inside}")  # noqa: S608


def _book(stored: StoredCodebook | None) -> int:
    return -1 if stored is None else stored.codebook.checksum
