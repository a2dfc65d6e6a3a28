"""A library in PostgreSQL when things go wrong or come together: lost connections, damage, two makers, vectors too long for an index."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("psycopg", reason="the extra pgvector is not installed")

from tests.library.test_pgvector_store import DIMENSION, SETTINGS, entry

from munjang.errors import Busy, InputError, MunjangError, UsageError
from munjang.library import pg_index, pg_schema, pg_write, pgvector_store
from munjang.library.library import Library
from munjang.library.pg_connections import Address, PostgresConnections, run
from munjang.library.pgvector_store import PgvectorStore
from munjang.library.store import CommitUnknown, ServerLost


def test_a_library_in_postgres_answers_as_one_in_a_file(url, opened, encoder):
    records = [{"id": str(number), "text": f"rain {number} in {'summer' if number % 2 else 'winter'}", "n": number} for number in range(30)]
    answers = []
    for library in (opened(encoder), Library.open(f"{url}#answers", encoder, analyser="bigrams")):
        library.add(records)
        for options in ({}, {"where": "n >= 20"}, {"exact": True, "where": "n in (3, 4)"}):
            answers.append([(hit.id, round(hit.score, 5)) for hit in library.search("rain 4 in winter", k=4, **options)])
        answers.append([hit.id for hit in library.search("rain 4 in winter", k=4)])
    assert library.prepare() == "exact"
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
    connection = PostgresConnections(Address.parse(url)).connect()
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
    for precision in pg_index.LARGEST:
        monkeypatch.setitem(pg_index.LARGEST, precision, 2_000)
    dimension = 2_001
    store = PgvectorStore.open(f"{url}#wide", create_with=replace(SETTINGS, dimension=dimension))
    vectors = np.random.default_rng(0).normal(size=(10, dimension)).astype(np.float32)
    with store.writer("test"):
        store.put(entry(str(number), vector) for number, vector in enumerate(vectors))
    assert store.count() == (10, 10)
    assert store.prepare(method=None, precision=None, recall=0.9, patience=1) == "exact"
    with pytest.raises(UsageError, match="at most 2,000 dimensions"):
        store.prepare(method="hnsw", precision=None, recall=0.9, patience=1)
    [best] = store.nearest(vectors[7], 1)
    assert store.places([best.row])[best.row].id == "7"
    connection = store._connections.connect()
    assert run(connection, "SELECT count(*) FROM pg_indexes WHERE schemaname = 'wide' AND indexdef LIKE '%%hnsw%%'").fetchone() == (0,)
    connection.close()
    store.close()


def test_four_writers_are_all_served_in_turn(url, make_encoder):
    Library.open(f"{url}#turns", make_encoder(), analyser="bigrams").close()

    def write(writer: int) -> list[str]:
        acknowledged = []
        with Library.open(f"{url}#turns", make_encoder()) as library:
            for number in range(15):
                assert library.add([{"id": f"{writer}-{number}", "text": f"rain {number}"}]).added == 1
                acknowledged.append(f"{writer}-{number}")
        return acknowledged

    with ThreadPoolExecutor(4) as pool:
        acknowledged = [id for each in pool.map(write, range(4)) for id in each]
    with Library.open(f"{url}#turns", make_encoder()) as library:
        assert len(library.get(acknowledged)) == 60
        assert library.check() == []


def test_patience_ends_and_says_who_writes(url, encoder):
    library, other = (Library.open(f"{url}#patient", encoder, analyser="bigrams", patience=0.2) for _ in range(2))
    with library.store.writer("add news.csv"):
        start = time.monotonic()
        with pytest.raises(Busy, match=r"process \d+ \('add news.csv', since"):
            other.add(["rain"])
        assert 0.15 < time.monotonic() - start < 10
    assert other.add(["rain"]).added == 1
    library.close()
    other.close()


def test_while_the_server_ends_connections_everything_acknowledged_is_there(url, make_encoder):
    address, done = f"{url}#shaken", threading.Event()
    Library.open(address, make_encoder(), analyser="bigrams").close()
    acknowledged: list[str] = []
    foreign: list[BaseException] = []

    def work(writer: int) -> None:
        library, number = Library.open(address, make_encoder()), 0
        while not done.is_set():
            number += 1
            try:
                if writer == 2:
                    library.search("rain", k=3)
                else:
                    assert library.add([{"id": f"{writer}-{number}", "text": f"rain {number}"}]).added == 1
                    acknowledged.append(f"{writer}-{number}")
            except MunjangError:
                pass
            except BaseException as error:  # psycopg's, which callers cannot know
                foreign.append(error)
        library.close()

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        time.sleep(0.2)
        hang_up(url)
    done.set()
    for thread in threads:
        thread.join()
    assert foreign == []
    assert len(acknowledged) > 5
    with Library.open(address, make_encoder()) as library:
        assert len(library.get(acknowledged)) == len(acknowledged)
        assert library.check() == []


@pytest.mark.parametrize("is_there", [True, False])
def test_an_add_whose_commit_nobody_heard_of_is_made_sure_of(url, encoder, monkeypatch, is_there):
    library = Library.open(f"{url}#doubt_{int(is_there)}", encoder, analyser="bigrams")
    library.add([{"id": "old", "text": "snow"}])
    commit, lost = PgvectorStore._commit, []

    def commit_and_be_lost(self, connection) -> None:
        if len(lost) < 1:
            lost.append(1)
            if is_there:
                commit(self, connection)
            connection.close()
            raise CommitUnknown("the last change may be there or not")
        commit(self, connection)

    monkeypatch.setattr(PgvectorStore, "_commit", commit_and_be_lost)
    report = library.add([{"id": "new", "text": "rain"}, {"id": "old", "text": "snow"}])
    assert (report.added, report.unchanged) == (1, 1)
    lost.clear()
    assert library.remove(["new"]) == 1
    assert [document.id for document in library.get(["new", "old"])] == ["old"]
    library.close()


def test_a_server_that_stays_away_is_told_when_patience_ends(url, encoder, monkeypatch):
    library = Library.open(f"{url}#away", encoder, analyser="bigrams", patience=0.3)
    library.store.close()
    monkeypatch.setattr(library.store._connections, "address", replace(Address.parse(f"{url}#away"), url="postgresql://127.0.0.1:1/db"))
    with pytest.raises(ServerLost, match="the server does not answer"):
        library.add(["rain"])
    with pytest.raises(ServerLost, match="the server does not answer"):
        library.search("rain")
    library.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@more@host/db",
        "postgresql://me:hun/ter2@host/db",
        "postgresql://me:hun#ter2@host/db",
        "postgresql://me:hun?ter2@host/db",
        "postgresql://me:hunter2",
        "postgresql://me:hunter2@host:hunter2/db",
        "mysql://me:hunter2@host/db",
    ],
)
def test_an_address_that_cannot_be_read_does_not_show_its_password(address):
    with pytest.raises(UsageError) as error:
        PgvectorStore.open(address)
    assert "hun" not in str(error.value)


def test_what_the_driver_says_of_an_address_is_shown_without_its_password():
    address = Address.parse("postgresql://me:hunter%202@127.0.0.1:1/db?sslmode=hunter%202&connect_timeout=1#x")
    assert "hunter" not in address.hide('invalid sslmode value: "hunter 2" in postgresql://me:hunter%202@host, hunter%202')
    with pytest.raises(MunjangError) as error:
        PostgresConnections(address).connect()
    assert "hunter" not in str(error.value)
