"""A library spread over a cluster: what its schema and queries must hold for Citus, and what readers see while a change is on its way.

Everything runs on one server with stand-ins for Citus' functions (`tests.postgres.one_node_url`), and on the cluster that
MUNJANG_TEST_CITUS_URL names, if it names one. The promises of every store are tested for both by tests/contract/test_store.py.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("psycopg", reason="the extra pgvector is not installed")

from tests.library.conftest import StubEncoder
from tests.library.test_pgvector_store import DIMENSION, SETTINGS, entry
from tests.postgres import citus_url, one_node_url, postgres_url

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.library import pg_cluster, pg_cluster_write, pgvector_store
from munjang.library.copying import copy_library
from munjang.library.library import Library
from munjang.library.pg_cluster import DISTRIBUTED, Window
from munjang.library.pg_connections import run
from munjang.library.pgvector_store import PgvectorStore
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import NewMetadata, ServerLost, Store
from munjang.library.where import Compare


@pytest.fixture(params=[one_node_url, citus_url], ids=["one node", "citus"])
def make(request) -> Iterator[Callable[[str], PgvectorStore]]:
    """Opens a distributed library by its name; the same name gives the same library."""
    url, opened = request.param(), []

    def open_library(name: str) -> PgvectorStore:
        opened.append(PgvectorStore.open(f"{url}#{name}_{request.param.__name__}", create_with=SETTINGS, distributed=True))
        return opened[-1]

    yield open_library
    for store in opened:
        with store._connections._lent() as connection:
            run(connection, f"DROP SCHEMA IF EXISTS {store._connections.address.schema} CASCADE")
        store.close()


def put(store: Store, *ids: str, seed: int = 0) -> None:
    random = np.random.default_rng(seed)
    with store.writer("test"):
        store.put([entry(id, random.normal(size=DIMENSION).astype(np.float32), {"seed": seed}) for id in ids])


def stored_numbers(store: PgvectorStore) -> int:
    with store._connections._lent() as connection:
        return run(connection, "SELECT count(*) FROM documents").fetchone()[0]


def test_every_key_holds_the_column_by_which_its_table_is_spread(make):
    store = make("keys")
    names = "ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = {0} AND attnum = ANY({1}))"
    keys = f"""SELECT conrelid::regclass::text, contype, {names.format("conrelid", "conkey")}, confrelid::regclass::text,
                      {names.format("confrelid", "confkey")} FROM pg_constraint WHERE conrelid = ANY(%s::regclass[])"""
    indexes = f"""SELECT indrelid::regclass::text, {names.format("indrelid", "indkey")}
                  FROM pg_index WHERE indisunique AND indrelid = ANY(%s::regclass[])"""
    with store._connections._lent() as connection:
        constraints = [row for row in run(connection, keys, (list(DISTRIBUTED),)) if row[1] in ("p", "u", "f")]
        unique = run(connection, indexes, (list(DISTRIBUTED),)).fetchall()
    assert {table for table, kind, *_ in constraints if kind == "p"} == set(DISTRIBUTED)
    for table, kind, columns, other, other_columns in constraints:
        assert DISTRIBUTED[table] in columns
        assert kind != "f" or DISTRIBUTED[other] in other_columns
    assert all(DISTRIBUTED[table] in columns for table, columns in unique)


JOINED = {
    frozenset({"documents", "passages"}): re.compile(r"documents\.number = passages\.document|passages\.document = documents\.number"),
    frozenset({"words", "passages"}): re.compile(r"words\.document = passages\.document"),
    frozenset({"token_codes", "passages"}): re.compile(r"token_codes\.document = passages\.document"),
}


def test_every_query_looks_through_the_window_and_joins_inside_a_node(make, monkeypatch):
    asked: list[tuple[str, str]] = []
    real = Window.restrict

    def watched(window: Window, sql: str) -> str:
        asked.append((sql, real(window, sql)))
        return asked[-1][1]

    monkeypatch.setattr(Window, "restrict", watched)
    store = make("queries")
    put(store, "a", "b")
    query, rows = np.ones(DIMENSION, np.float32), store.rows()
    where = Compare("seed", "=", 0)
    store.prepare(method="hnsw", precision=None, recall=0.9, patience=1)
    for exact in (True, False):
        assert len(store.nearest(query, 5, where=where, exact=exact)) == len(store.nearest(query, 5, exact=exact)) == 2
    assert len(store.lexical(["snow"], 5, where=where)) == len(store.lexical(["snow"], 5)) == 2
    assert [len(found) for found in (store.get(["a"]), store.places(rows), store.rows(where), store.rows_of(["a"]))] == [1, 2, 2, 1]
    assert (store.word_frequencies(["snow"]), store.keys(5), store.has_key("seed"), store.check()) == ((2, [2]), ["seed"], True, [])
    assert len(list(store.entries(tokens=True))) == len(list(store.vectors())) == 1
    assert (len(store.vectors_of(rows).rows_N), len(store.rows_without_codes(5)), store.token_codes_of(rows)) == (2, 2, {})
    with store.writer("test"):
        store.put([NewMetadata("a", {"seed": 1})])
    seen, is_join = set(), re.compile(r"JOIN|= (passages|documents)\.")
    for sql, restricted in asked:
        tables = set(re.findall(rf"\b(?:FROM|JOIN)\s+({'|'.join(DISTRIBUTED)})\b", sql))
        seen |= tables
        for table in tables:
            bare = re.findall(rf"\b(?:FROM|JOIN) {table}\b(?! WHERE \([^()]*(?:BETWEEN|false))", restricted)
            assert not bare, restricted
        for pair, join in JOINED.items():
            assert not (pair <= tables and is_join.search(sql)) or join.search(sql), sql
        assert not {"words", "documents"} <= tables or "passages" in tables
    assert seen == set(DISTRIBUTED)


def test_what_is_not_published_is_not_seen_and_never_will_be(make, monkeypatch):
    store, other = make("half"), make("half")
    put(store, "a", "b")
    before = other.generation(), other.rows().tolist()

    def lose_a_node(connection, name) -> None:
        assert (other.generation(), other.rows().tolist()) == before
        assert other.get(["a", "c"]).keys() == {"a"}
        raise ServerLost("a node is gone")

    with monkeypatch.context() as patch:
        patch.setattr(pgvector_store, "confirm_commit", lose_a_node)
        with pytest.raises(ServerLost):
            put(store, "a", "c", seed=1)
    assert (other.generation(), other.rows().tolist(), stored_numbers(store)) == (*before, 4)
    put(store, "d")
    assert other.get(["a", "b", "c", "d"]).keys() == {"a", "b", "d"}
    assert other.get(["a"])["a"].metadata == {"seed": 0}
    assert other.count() == (3, 3)
    with store.writer("test"):
        store.compact()
    assert (stored_numbers(store), other.check()) == (3, [])


def test_what_is_gone_stays_for_those_who_read_it_and_is_deleted_behind_them(make, monkeypatch):
    store, other = make("gone"), make("gone")
    put(store, "a", "b")
    monkeypatch.setattr(pgvector_store, "_microseconds", itertools.count(time.time_ns() // 1_000, 10**7).__next__)  # ten seconds apart
    with store.snapshot():
        assert store.count() == (2, 2)
        put(other, "a", seed=1)
        with other.writer("test"):
            assert other.delete(["b", "nobody"]) == 1
        assert stored_numbers(store) == 3
        assert {id: document.metadata for id, document in store.get(["a", "b"]).items()} == {"a": {"seed": 0}, "b": {"seed": 0}}
        assert sum(len(block.rows_N) for block in store.vectors()) == 2
    assert store.get(["a", "b"]).keys() == {"a"}
    put(other, "c")
    put(other, "d")
    assert stored_numbers(store) == 3
    assert store.count() == (3, 3)


def test_what_a_node_has_not_confirmed_to_be_deleted_is_still_left_out(make, monkeypatch):
    store = make("unsure")
    put(store, "a", "b")
    monkeypatch.setattr(pgvector_store, "_microseconds", itertools.count(time.time_ns() // 1_000, 10**7).__next__)

    def lose_a_node(connection, name) -> None:
        raise ServerLost("a node is gone")

    with monkeypatch.context() as patch:
        patch.setattr(pg_cluster_write, "confirm_commit", lose_a_node)
        put(store, "a", seed=1)
        put(store, "c")
    with store._connections._lent() as connection:
        assert run(connection, "SELECT count(*) FROM gone").fetchone() == (1,)
    assert store.count() == (3, 3)
    put(store, "d")
    with store._connections._lent() as connection:
        assert run(connection, "SELECT count(*) FROM gone").fetchone() == (0,)
    assert store.count() == (4, 4)


def test_other_metadata_keep_the_rows_and_every_reader_sees_all_or_none_of_them(make):
    store, other = make("labels"), make("labels")
    put(store, "a", "b", "c")
    rows = store.rows().tolist()
    with store.snapshot():
        assert store.count() == (3, 3)
        with other.writer("test"):
            other.put([NewMetadata(id, {"year": 1}) for id in ("a", "b", "nobody")])
        assert [document.metadata for document in store.get(["a", "b", "c"]).values()] == [{"seed": 0}] * 3
    assert sorted(document.metadata.get("year", 0) for document in store.get(["a", "b", "c"]).values()) == [0, 1, 1]
    assert (store.rows().tolist(), store.check()) == (rows, [])


@pytest.mark.parametrize("size", [300, pytest.param(5_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["postgres", "one node", "citus"])
def test_answers_equal_those_of_a_file(tmp_path, kind, size):
    url = {"postgres": postgres_url, "one node": one_node_url, "citus": citus_url}[kind]()
    random = np.random.default_rng(0)
    nouns = ["rain", "snow", "river", "서울", "바다", "겨울", "train", "market", "비", "눈"]
    texts = [" ".join(random.choice(nouns, 5)) + f" {number % 97}" for number in range(size)]
    records = [{"id": str(number), "text": text, "year": number % 50, "kind": "ab"[number % 2]} for number, text in enumerate(texts)]
    encoder = StubEncoder(dimension=32)
    name = f"equal_{size}_{kind.replace(' ', '_')}"
    with (
        Library.open(tmp_path / "file.db", encoder, analyser="bigrams") as file,
        Library.open(f"{url}#{name}", encoder, analyser="bigrams", distributed=kind != "postgres") as server,
    ):
        for library in (file, server):
            library.add(records)
            library.remove(["7", "8"])
            library.add([{**records[9], "year": 99}, {**records[10], "text": "snow on the train"}])
        for query in ("rain 서울", "겨울 바다 train", "snow"):
            for options in (
                {},
                {"by": "meaning"},
                {"by": "words"},
                {"where": "year >= 40 and kind = 'a'"},
                {"where": "year = 99 or text contains 'snow on'", "by": "meaning"},
                {"where": "kind = 'b'", "by": "words"},
            ):
                answers = [library.search(query, k=20, exact=True, **options) for library in (file, server)]
                assert_equal_answers(*answers)
        with server.store._connections._lent() as connection:
            run(connection, f"DROP SCHEMA {name} CASCADE")


def assert_equal_answers(mine: list, theirs: list) -> None:
    """Scores are equal, and so are the documents wherever scores differ by more than rounding."""
    assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], abs=2e-6)
    last = mine[-1].score + 1e-5 if mine else 0
    assert {hit.id for hit in mine if hit.score > last} == {hit.id for hit in theirs if hit.score > last}


def test_a_library_goes_into_the_cluster_and_back_and_is_compared(make, tmp_path, monkeypatch):
    source, target = SqliteStore.open(tmp_path / "a.db", create_with=SETTINGS), make("moved")
    put(source, *"abcdef")
    address = f"{target._connections.address.url}#{target._connections.address.schema}"
    assert (copy_library(source, address), copy_library(source, address)) == (6, 0)
    assert copy_library(target, tmp_path / "back.db") == 6
    back = SqliteStore.open(tmp_path / "back.db")
    mine, theirs = (
        [(each.document, each.passages, each.vectors_PD.tobytes()) for [*block] in store.entries() for each in block]
        for store in (source, back)
    )
    assert sorted(mine, key=repr) == sorted(theirs, key=repr)
    put(source, "g")
    real = PgvectorStore.put

    def damaging(store, changes, /, **options):
        real(store, [replace(each, vectors_PD=each.vectors_PD + 1) for each in changes], **options)

    monkeypatch.setattr(PgvectorStore, "put", damaging)
    with pytest.raises(DamagedFile, match="document 'g' is not what was copied"):
        copy_library(source, address)
    for store in (source, back):
        store.close()


def test_what_cannot_be_spread_is_refused(make, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="is a file"):
        Library.open(tmp_path / "a.db", StubEncoder(), distributed=True)
    plain = f"{postgres_url()}#plain_one"
    PgvectorStore.open(plain, create_with=SETTINGS).close()
    with pytest.raises(UsageError, match="is a library on one server already"):
        PgvectorStore.open(plain, create_with=SETTINGS, distributed=True)
    store = make("worker")
    monkeypatch.setattr(pgvector_store, "check_coordinator", lambda connection, name: pg_cluster.check_coordinator(Worker(), name))
    with pytest.raises(UsageError, match="connect to the coordinator"):
        make("worker")
    store.close()
    with pytest.raises(InputError, match="not the coordinator of a Citus cluster"):
        pg_cluster.make_tables(Worker())


class Worker:
    """Answers as a node that is no coordinator, and a server without Citus."""

    def execute(self, query: bytes, values: object = None) -> Worker:
        return self

    def fetchone(self) -> tuple[object]:
        return (None,)


def test_shards_and_sizes_are_told(make):
    store = make("sizes")
    put(store, "a")
    nodes = store.nodes()
    assert sum(node.bytes for node in nodes) > 0
    assert all(node.shards > 0 and ":" in node.name for node in nodes)
