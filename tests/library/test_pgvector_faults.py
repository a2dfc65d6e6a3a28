"""A library in PostgreSQL when things go wrong or come together: lost connections, damage, two makers, vectors too long for an index."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("psycopg", reason="the extra pgvector is not installed")

from tests.library.test_pgvector_store import DIMENSION, SETTINGS, entry

from munjang.errors import InputError
from munjang.library import pg_schema, pg_write, pgvector_store
from munjang.library.library import Library
from munjang.library.pg_connections import Address, Connections, run
from munjang.library.pgvector_store import PgvectorStore


def test_a_library_in_postgres_answers_as_one_in_a_file(url, opened, encoder):
    records = [{"id": str(number), "text": f"rain {number} in {'summer' if number % 2 else 'winter'}", "n": number} for number in range(30)]
    answers = []
    for library in (opened(encoder), Library.open(f"{url}#answers", encoder, analyser="bigrams")):
        library.add(records)
        for options in ({}, {"where": "n >= 20"}, {"exact": True, "where": "n in (3, 4)"}):
            answers.append([(hit.id, round(hit.score, 5)) for hit in library.search("rain 4 in winter", k=4, **options)])
        answers.append([hit.id for hit in library.search("rain 4 in winter", k=4, hybrid=True)])
    assert library.prepare() == "the store's own index"
    library.close()
    assert answers[:4] == answers[4:]


def test_a_snapshot_inside_a_snapshot_sees_the_outer_one(url):
    store, other = (PgvectorStore.open(f"{url}#nested", create_with=SETTINGS) for _ in range(2))
    with store.snapshot():
        with other.writer("test"):
            other.put([entry("a", np.ones(DIMENSION, np.float32))])
        with store.snapshot():
            assert store.count() == (0, 0)
        assert store.count() == (0, 0)
    assert store.count() == (1, 1)
    store.close()
    other.close()


def hang_up(url: str) -> None:
    """End every connection to the database but the one that does it."""
    connection = Connections(Address.parsed(url)).connect()
    others = "pid <> pg_backend_pid() AND datname = current_database()"
    run(connection, f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {others}")  # and wait until they are gone
    connection.close()


def test_a_connection_that_the_server_ends_is_told_and_not_used_again(url):
    store = PgvectorStore.open(f"{url}#hung_up", create_with=SETTINGS)
    words = r"hung_up: the server does not answer \(.*\)\n  check the address and that it runs"
    with pytest.raises(InputError, match=words), store.snapshot():  # noqa: PT012 - the snapshot's end must not hide the error
        hang_up(url)
        store.count()
    assert store.count() == (0, 0)
    store.close()
    with pytest.raises(InputError, match=words), store.writer("test"):  # noqa: PT012 - nor the lock's release
        hang_up(url)
        store.put([entry("a", np.ones(DIMENSION, np.float32))])
    with store.writer("test"):
        store.put([entry("b", np.ones(DIMENSION, np.float32))])
    assert list(store.get(["a", "b"])) == ["b"]
    store.close()


def test_after_a_restart_of_the_server_no_read_fails(url):
    store = PgvectorStore.open(f"{url}#restarted", create_with=SETTINGS)
    with store.snapshot(), store._connections.walk():
        pass  # two connections, idle from now on
    assert len(store._connections._idle) == 2
    hang_up(url)
    assert [store.count() for _ in range(3)] == [(0, 0)] * 3
    assert len(store._connections._idle) == 1
    with store.snapshot():
        assert store.settings() == SETTINGS
    store.close()


def test_what_belongs_to_nothing_is_found_by_the_check(url):
    store = PgvectorStore.open(f"{url}#orphans", create_with=SETTINGS)
    with store.writer("test"):
        store.put([entry(id, np.ones(DIMENSION, np.float32)) for id in "abc"])
    connection = store._connections.connect()
    run(connection, 'DELETE FROM passages WHERE "row" < (SELECT max("row") FROM passages)')
    connection.close()
    assert "2 documents without a passage" in store.check()
    store.close()


def test_making_a_library_twice_leaves_the_first(url):
    store = PgvectorStore.open(f"{url}#twice", create_with=SETTINGS)
    connection = store._connections.connect()
    pg_schema.create(connection, "twice", replace(SETTINGS, model="other"))
    connection.close()
    assert store.settings() == SETTINGS
    store.close()


def test_vectors_too_long_for_an_index_are_searched_without_one(url, monkeypatch):
    monkeypatch.setattr(pgvector_store, "INDEXED_FROM", 1)
    monkeypatch.setattr(pg_write, "TOGETHER", 4)
    dimension = pg_schema.LARGEST_INDEXED + 1
    store = PgvectorStore.open(f"{url}#wide", create_with=replace(SETTINGS, dimension=dimension))
    vectors = np.random.default_rng(0).normal(size=(10, dimension)).astype(np.float32)
    with store.writer("test"):
        store.put(entry(str(number), vector) for number, vector in enumerate(vectors))
    assert store.count() == (10, 10)
    [best] = store.nearest(vectors[7], 1)
    assert store.places([best.row])[best.row].id == "7"
    connection = store._connections.connect()
    assert run(connection, "SELECT count(*) FROM pg_indexes WHERE schemaname = 'wide' AND indexdef LIKE '%%hnsw%%'").fetchone() == (0,)
    connection.close()
    store.close()
