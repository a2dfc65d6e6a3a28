"""Filters in PostgreSQL by an index over metadata: the same answers as without it. A real server is started."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.library.test_pgvector_store import CONDITIONS, DIMENSION, FOUND, KEYS, SETTINGS, index_names, prepare

from munjang.library import pg_filter, pgvector_store
from munjang.library.pg_connections import run
from munjang.library.store import Document, Entry, Passage
from munjang.library.where import AllOf, AnyOf, Compare, Contains, Not, OneOf, matches

pytest.importorskip("psycopg", reason="the extra pgvector is not installed")

from munjang.library.pgvector_store import PgvectorStore

COLOURS = ("red", "green", "푸른", "7", "7.0", " 7 ")
FILTERS = [
    Compare("colour", "=", "푸른"),
    Compare("colour", "=", 7),
    Compare("size", "=", 3.0),
    OneOf("size", (1, 2, "two")),
    Contains("tags", 5),
    Contains("colour", "ee"),
    AllOf((Compare("size", "=", 4), Compare("even", "=", True), Compare("size", "<", 9))),
    AnyOf((Compare("size", "=", 4), Contains("tags", True))),
    AnyOf((Compare("size", "=", 4), Compare("size", ">", 8))),
    Not(Compare("size", "=", 4)),
    Compare("id", "=", "7"),
    Compare("absent", "=", "red"),
]


def write(store: PgvectorStore, numbers: range) -> None:
    vectors = np.random.default_rng(numbers.start).normal(size=(len(numbers), DIMENSION)).astype(np.float32)
    with store.writer("test"):
        store.put(
            Entry(Document(str(i), "snow", {"colour": COLOURS[i % 6], "size": i % 11, "even": i % 2 == 0, "tags": [i % 7, "a"]}, "hash"),
                  (Passage(0, 4, ("snow", f"word{i % 3}")),), vector[None])
            for i, vector in zip(numbers, vectors, strict=True)
        )  # fmt: skip


@pytest.fixture(scope="module")
def store(url: str) -> Iterator[PgvectorStore]:
    """A library whose metadata were indexed halfway."""
    store = PgvectorStore.open(f"{url}#filtered", create_with=SETTINGS)
    write(store, range(300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pgvector_store, "INDEXED_FROM", 10)
        prepare(store)
    write(store, range(300, 400))
    yield store
    store.close()


@settings(max_examples=400, deadline=None)
@given(condition=CONDITIONS, metadata=st.dictionaries(KEYS, FOUND, max_size=4))
def test_what_meets_a_condition_has_its_terms(store, condition, metadata):
    terms = pg_filter._write_terms(condition)
    assume(terms is not None)
    with store._connections.reader() as connection:
        sql = f"SELECT {terms[0]} FROM (SELECT %s::jsonb AS found) AS documents"
        [[found]] = run(connection, sql, (*terms[1], json.dumps(metadata, ensure_ascii=False)))
    assert found or not matches(condition, metadata)


@pytest.mark.parametrize("where", FILTERS, ids=repr)
def test_answers_are_those_without_the_index(store, where, monkeypatch):
    query = np.random.default_rng(5).normal(size=DIMENSION).astype(np.float32)

    def answer() -> tuple:
        return store.rows(where).tolist(), store.nearest(query, 10, where=where), store.lexical(["snow", "word1"], 10, where=where)

    with_index = answer()
    monkeypatch.setattr(pg_filter, "has_index", lambda *_: False)
    without = (
        store.rows(where).tolist(),
        store.nearest(query, 10, where=where, exact=True),
        store.lexical(["snow", "word1"], 10, where=where),
    )
    assert with_index[0] == without[0]
    assert [hit.row for hit in with_index[1]] == [hit.row for hit in without[1]]
    assert with_index[2] == without[2]


def test_few_documents_are_found_by_the_index_and_many_by_a_walk(store, monkeypatch):
    with store._connections.snapshot() as connection:
        run(connection, "SET LOCAL enable_seqscan = off")
        few = pg_filter.filter_passages(connection, Compare("size", "=", 4), can_walk=True)
        assert few.by_terms
        plan = run(connection, f'EXPLAIN SELECT "row" FROM passages WHERE {few.condition}', few.values).fetchall()
        assert "documents_by_metadata" in str(plan)
        monkeypatch.setattr(pg_filter, "READ_FACTOR", 1)
        assert not pg_filter.filter_passages(connection, Compare("size", "=", 4), can_walk=True).by_terms
        assert pg_filter.filter_passages(connection, Compare("size", "=", 4)).by_terms
        assert pg_filter.filter_passages(connection, Compare("absent", "=", "red"), can_walk=True).by_terms
        assert not pg_filter.filter_passages(connection, Compare("size", ">", 9)).by_terms


def test_a_large_library_that_has_an_index_of_its_vectors_only_gets_the_others(url, monkeypatch):
    store = PgvectorStore.open(f"{url}#grown", create_with=SETTINGS)
    write(store, range(50))

    def has_others() -> list[bool]:
        with store._connections.reader() as connection:
            return [pg_filter.has_index(connection, name) for name in ("documents_by_metadata", "passages_by_length")]

    assert prepare(store, "hnsw") == "hnsw, float16"
    assert has_others() == [False, False]
    monkeypatch.setattr(pgvector_store, "INDEXED_FROM", 10)
    assert prepare(store) == "hnsw, float16"
    assert has_others() == [True, True]
    assert prepare(store, "ivfflat") == "ivfflat, float16"
    assert index_names(store) == {f"passages_near_{DIMENSION}_ivfflat_float16"}
    assert store.check() == []
    store.close()
