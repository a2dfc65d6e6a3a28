"""What PostgreSQL adds to the contract: its own nearest neighbours, its index, its filters, its addresses. A real server is started."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.library import pg_index, pgvector_store
from munjang.library.pg_connections import Address, run
from munjang.library.pg_index import NearIndex, find_index, make_index
from munjang.library.pg_write import vector_text
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Document, Entry, NearestRows, Passage, Settings
from munjang.library.where import AllOf, AnyOf, Compare, Contains, IsNull, Like, Not, OneOf, matches
from munjang.library.where_sql import where_postgres

pytest.importorskip("psycopg", reason="the extra pgvector is not installed")

from munjang.library.pgvector_store import PgvectorStore

DIMENSION = 8
SETTINGS = Settings("stub", "f00d", DIMENSION, "bigrams", 100, 20)
KEYS = st.sampled_from(["a", "b", 'q"uote', "back\\slash", "점", "a.b", "x'; DROP TABLE documents; --", "%s", "{}"])
TEXTS = st.text("abAB%_'\"\\소é 1.e+-\n", max_size=5) | st.sampled_from(["1e999", " 7 ", "1_0", "٣", ".5", "5.", "-0", "9" * 301])
VALUES = st.one_of(TEXTS, st.integers(-3, 3), st.floats(-3, 3, width=16), st.booleans(), st.just(0.1), st.just(10**20))
FOUND = st.one_of(VALUES, st.none(), st.lists(VALUES, max_size=3), st.dictionaries(st.just("a"), VALUES, max_size=1))
TESTS = st.one_of(
    st.builds(Compare, KEYS, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), VALUES),
    st.builds(OneOf, KEYS, st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, KEYS, TEXTS),
    st.builds(Contains, KEYS, VALUES),
    st.builds(IsNull, KEYS),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def store(url: str) -> Iterator[PgvectorStore]:
    store = PgvectorStore.open(f"{url}#shared", create_with=SETTINGS)
    vectors = np.random.default_rng(0).normal(size=(400, DIMENSION)).astype(np.float32)
    vectors[7] = 0
    with store.writer("test"):
        store.put(entry(str(i), vector, {"even": i % 2 == 0}) for i, vector in enumerate(vectors))
    yield store
    store.close()


def entry(id: str, vector: np.ndarray, metadata: dict | None = None) -> Entry:
    return Entry(Document(id, "snow", metadata or {}, "hash"), (Passage(0, 4, ("snow",)),), vector[None])


def brute_force(store: PgvectorStore, query: np.ndarray, k: int, ids: set[str] | None = None) -> list[int]:
    [block] = store.vectors()
    lengths = np.maximum(np.linalg.norm(block.vectors_ND, axis=1), 1e-30)
    scores = block.vectors_ND @ query / lengths
    order = [place for place in np.argsort(-scores, kind="stable") if ids is None or block.ids[place] in ids]
    return [int(block.rows_N[place]) for place in order[:k]]


@settings(max_examples=400, deadline=None)
@given(condition=CONDITIONS, metadata=st.dictionaries(KEYS, FOUND, max_size=4))
def test_postgres_and_python_agree_on_what_a_condition_means(store, condition, metadata):
    sql, values = where_postgres(condition)
    with store._connections.reader() as connection:
        source = json.dumps(metadata, ensure_ascii=False)
        [[found]] = run(connection, f"SELECT {sql} FROM (SELECT %s::jsonb AS found) AS documents", (*values, source))
    assert found is matches(condition, metadata)


def test_it_is_a_vector_search_and_equals_brute_force(store):
    assert isinstance(store, NearestRows)
    query = np.random.default_rng(1).normal(size=DIMENSION).astype(np.float32)
    found = store.nearest(query, 10, exact=True)
    assert [hit.row for hit in found] == brute_force(store, query, 10)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    only = store.nearest(query, 10, where=Compare("even", "=", True), exact=True)
    assert [hit.row for hit in only] == brute_force(store, query, 10, {str(i) for i in range(0, 400, 2)})
    assert len(store.nearest(query, 1000, exact=True)) == 400


def index_names(store: PgvectorStore) -> set[str]:
    with store._connections.reader() as connection:
        return {
            name
            for (name,) in run(
                connection, "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'passages\\_near%%' AND schemaname = current_schema()"
            )
        }


def prepare(store: PgvectorStore, method=None, precision=None) -> str:
    return store.prepare(method=method, precision=precision, recall=0.98, patience=1)


@pytest.mark.parametrize("precision", ["float32", "float16", "binary"])
@pytest.mark.parametrize("method", ["hnsw", "ivfflat"])
def test_an_index_finds_nearly_the_same_with_the_same_scores(store, method, precision):
    assert prepare(store, method, precision) == f"{method}, {precision}"
    assert index_names(store) == {f"passages_near_{DIMENSION}_{method}_{precision}"}
    query = np.random.default_rng(2).normal(size=DIMENSION).astype(np.float32)
    exact = {hit.row: hit.score for hit in store.nearest(query, 10, exact=True)}
    near = {hit.row: hit.score for hit in store.nearest(query, 10)}
    assert len(near) == 10
    assert len(near.keys() & exact.keys()) >= 9
    assert all(near[row] == exact[row] for row in near.keys() & exact.keys())
    assert len(store.nearest(query, 20, where=Compare("even", "=", False))) == 20
    assert len(store.nearest(query, 1000)) == 400


def test_an_index_is_asked_and_not_passed_over(store):
    prepare(store, "hnsw", "float16")
    query = np.ones(DIMENSION, np.float32)
    with store._connections.snapshot() as connection:
        index = find_index(connection, DIMENSION)
        run(connection, "SET LOCAL enable_seqscan = off")
        sql = f'EXPLAIN SELECT "row" FROM passages WHERE vector_dims(vector) = {DIMENSION} ORDER BY {index.order} LIMIT 3'
        plan = "\n".join(line for (line,) in run(connection, sql, [vector_text(query)]))
    assert f"Index Scan using {index.name}" in plan


def test_a_graph_has_the_memory_to_be_built_in(url, monkeypatch):
    """Where it has not, pgvector says so and goes on many times more slowly."""
    monkeypatch.setattr(pg_index, "_LEAST_MEMORY", 1)
    store = PgvectorStore.open(f"{url}#memory", create_with=SETTINGS)
    vectors = np.random.default_rng(0).normal(size=(8_000, DIMENSION)).astype(np.float32)
    with store.writer("test"):
        store.put(entry(str(i), vector) for i, vector in enumerate(vectors))
    notices: list[str] = []
    with store._connections.connect() as connection, connection.transaction():
        connection.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
        run(connection, "SET LOCAL maintenance_work_mem = '1MB'")
        make_index(connection, NearIndex(DIMENSION, "hnsw", "float32", 40), len(vectors))
    assert [notice for notice in notices if "no longer fits" in notice] == []
    store.close()


def test_a_graph_that_will_not_fit_into_memory_is_announced_with_what_to_do(store):
    index = NearIndex(384, "hnsw", "float16", 40)
    with store._connections._lent() as connection, connection.transaction():
        pg_index._give_memory(connection, index, 1_000_000)
        assert run(connection, "SHOW maintenance_work_mem").fetchone()[0] == "1593MB"
        with pytest.warns(pg_index.IndexMemoryWarning, match=r'7,963 MB and gets 2,048.*\n.*maintenance_work_mem=7963MB"'):
            pg_index._give_memory(connection, index, 5_000_000)


def test_building_an_index_reports_how_many_passages_it_holds(url, monkeypatch):
    monkeypatch.setattr(pg_index, "_LOOK_SECONDS", 0.02)
    store = PgvectorStore.open(f"{url}#reported", create_with=SETTINGS)
    vectors = np.random.default_rng(0).normal(size=(8_000, DIMENSION)).astype(np.float32)
    with store.writer("test"):
        store.put(entry(str(i), vector) for i, vector in enumerate(vectors))
    reported: list[int] = []
    store.prepare(method="hnsw", precision=None, recall=0.98, patience=1, progress=reported.append)
    assert len(reported) > 1
    assert min(reported) > 0
    assert sum(reported) <= len(vectors)
    store.close()


def test_a_library_gets_its_index_when_it_is_large_and_keeps_the_one_it_has(store, url, monkeypatch):
    fresh = PgvectorStore.open(f"{url}#grows", create_with=SETTINGS)
    with fresh.writer("test"):
        fresh.put(
            entry(str(i), vector) for i, vector in enumerate(np.random.default_rng(0).normal(size=(50, DIMENSION)).astype(np.float32))
        )
    assert prepare(fresh) == "exact"
    assert index_names(fresh) == set()
    monkeypatch.setattr(pgvector_store, "INDEXED_FROM", 10)
    assert prepare(fresh) == "hnsw, float16"
    assert prepare(fresh, precision="binary") == prepare(fresh) == "hnsw, binary"
    assert index_names(fresh) == {f"passages_near_{DIMENSION}_hnsw_binary"}
    fresh.close()


def test_an_index_of_munjang_0_1_is_asked_and_replaced_when_another_is_wanted(store, url):
    old = PgvectorStore.open(f"{url}#older", create_with=SETTINGS)
    connection = old._connections.connect()
    made = f"passages_near_{DIMENSION} ON passages USING hnsw ((vector::vector({DIMENSION})) vector_cosine_ops)"
    run(connection, f"CREATE INDEX {made} WHERE vector_dims(vector) = {DIMENSION}")
    connection.close()
    assert prepare(old) == "hnsw, float32"
    assert prepare(old, precision="float16") == "hnsw, float16"
    assert index_names(old) == {f"passages_near_{DIMENSION}_hnsw_float16"}
    old.close()


def test_a_filter_that_an_index_walk_cannot_meet_is_answered_exactly(url, monkeypatch):
    store = PgvectorStore.open(f"{url}#rare", create_with=SETTINGS)
    random = np.random.default_rng(3)
    near, far = np.ones(DIMENSION, np.float32), -np.ones(DIMENSION, np.float32)
    with store.writer("test"):
        store.put(entry(str(i), near + random.normal(size=DIMENSION).astype(np.float32) / 9, {"rare": False}) for i in range(3_000))
        store.put(entry(f"rare {i}", far, {"rare": True}) for i in range(5))
    prepare(store, "hnsw", "float16")
    monkeypatch.setattr(pg_index, "MOST_WALKED", 10)
    assert len(store.nearest(near, 10, where=Compare("rare", "=", True))) == 5
    store.close()


def test_a_vector_of_zeros_has_a_score_of_zero_and_stands_before_negative_ones(store):
    scores = [hit.score for hit in store.nearest(np.ones(DIMENSION, np.float32), 400, exact=True)]
    assert scores == sorted(scores, reverse=True)
    assert scores.count(0.0) == 1


def test_a_query_of_another_length_is_refused(store):
    with pytest.raises(UsageError, match="expected \\(8,\\)"):
        store.nearest(np.zeros(3, np.float32), 1)


def test_every_float32_comes_back_bit_for_bit(url):
    store = PgvectorStore.open(f"{url}#bits", create_with=SETTINGS)
    odd = np.array([1e-38, 3.4e38, -0.0, 0.1, 1 / 3, 16777217, -1e-30, 1.1754944e-38], dtype=np.float32)
    with store.writer("test"):
        store.put([entry("a", odd)])
    [block] = store.vectors()
    assert block.vectors_ND.tobytes() == odd.tobytes()
    store.close()


def test_a_changed_vector_and_a_changed_text_are_noticed(url):
    store = PgvectorStore.open(f"{url}#damage", create_with=SETTINGS)
    with store.writer("test"):
        store.put([entry("a", np.ones(DIMENSION, np.float32))])
    connection = store._connections.connect()
    run(connection, "UPDATE passages SET vector = '[1,1,1,1,1,1,1,1.0000001]'")
    run(connection, "UPDATE documents SET text = 'snew'")
    connection.close()
    assert len(store.check()) == 2
    with pytest.raises(DamagedFile):
        list(store.vectors())
    with pytest.raises(DamagedFile):
        store.get(["a"])
    store.close()


def test_ids_and_words_longer_than_an_index_entry_are_fine(url):
    store = PgvectorStore.open(f"{url}#long", create_with=SETTINGS)
    long = "긴" * 20_000
    given = Entry(Document(long, long, {}, "hash"), (Passage(0, 4, (long, "rain")),), np.ones((1, DIMENSION), np.float32))
    with store.writer("test"):
        store.put([given])
    assert store.get([long])[long].text == long
    assert len(store.lexical([long], 3)) == 1
    with pytest.raises(UsageError, match="NUL"), store.writer("test"):
        store.put([entry("a\x00", np.ones(DIMENSION, np.float32))])
    store.close()


def test_libraries_in_one_database_do_not_know_each_other(url):
    one, two = (PgvectorStore.open(f"{url}#{name}", create_with=SETTINGS) for name in ("one", "two"))
    with one.writer("test"), two.writer("test"):
        one.put([entry("a", np.ones(DIMENSION, np.float32))])
    assert (one.count(), two.count()) == ((1, 1), (0, 0))
    assert one.uuid != two.uuid
    one.close()
    two.close()


def test_addresses_are_read_and_passwords_not_shown(url):
    assert "secret" not in Address.parse("postgresql://me:secret@host:1/db?sslmode=require#x").shown
    for wrong in ("mysql://host/db", "postgresql://host/db#Robert'); DROP TABLE x; --"):
        with pytest.raises(UsageError):
            Address.parse(wrong)
    with pytest.raises(InputError, match="no such library"):
        PgvectorStore.open(f"{url}#nobody")
    with pytest.raises(InputError, match="does not answer") as error:
        PgvectorStore.open("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(error.value)


def test_a_filter_with_nul_is_refused(store):
    with pytest.raises(UsageError, match=r"filter: 'a\\x00' holds NUL, which no text in PostgreSQL does"):
        store.rows(Compare("a", "=", "a\x00"))


def test_words_are_scored_as_fts5_scores_them(url, tmp_path):
    """SQLite's FTS5 is the authority; words in more than half of the passages are among those asked for."""
    chance = np.random.default_rng(3)
    words = ["snow", "rain", "서울", "눈", "train", "winter", "bert4", "한국어"]
    likely = np.array([40, 20, 10, 10, 8, 6, 4, 2]) / 100
    entries = [
        Entry(Document(str(i), "text", {}, "hash"), (Passage(0, 4, tuple(chance.choice(words, size=chance.integers(1, 15), p=likely))),),
              np.ones((1, DIMENSION), np.float32))
        for i in range(80)
    ]  # fmt: skip
    stores = SqliteStore.open(tmp_path / "a.db", create_with=SETTINGS), PgvectorStore.open(f"{url}#alike", create_with=SETTINGS)
    for store in stores:
        with store.writer("test"):
            store.put(entries)
    for asked in ([*words], ["snow"], ["눈", "bert4"], ["snow", "한국어", "absent"]):
        here, there = ({store.places([each.row])[each.row].id: each.score for each in store.lexical(asked, 80)} for store in stores)
        assert here.keys() == there.keys()
        assert [here[id] for id in there] == pytest.approx(list(there.values()), rel=1e-6)
    for store in stores:
        store.close()


def test_words_are_weighed_by_what_the_last_commit_holds(url):
    one, two = (PgvectorStore.open(f"{url}#weighed", create_with=SETTINGS) for _ in range(2))
    vector = np.ones((1, DIMENSION), np.float32)

    def put(store: PgvectorStore, id: str, *words: str) -> None:
        with store.writer("test"):
            store.put([Entry(Document(id, "text", {}, "hash"), (Passage(0, 4, words),), vector)])

    put(one, "a", "snow", "rain")
    for id in "bcdef":
        one.lexical(["snow"], 10)
        one.word_frequencies(["snow"])
        put(two, id, "rain", *["wind"] * len(id))
        assert one.lexical(["snow"], 10) == two.lexical(["snow"], 10)
        assert one.word_frequencies(["snow", "rain"]) == two.word_frequencies(["snow", "rain"])
    assert one.word_frequencies(["snow", "rain", "absent"]) == (6, [1, 6, 0])
    one.close()
    two.close()


def test_passages_with_the_same_words_have_the_same_score_in_the_order_of_their_rows(url):
    store = PgvectorStore.open(f"{url}#equal", create_with=SETTINGS)
    words, chance = [f"word{i}" for i in range(30)], np.random.default_rng(0)
    with store.writer("test"):
        store.put(
            Entry(Document(str(i), "text", {}, "hash"), (Passage(0, 4, tuple(chance.permutation(words[: 20 if i % 2 else 30]).tolist())),),
                  np.ones((1, DIMENSION), np.float32))
            for i in range(40)
        )  # fmt: skip
    hits = store.lexical(words, 40)
    assert len({hit.score for hit in hits}) == 2
    assert [hit.row for hit in hits] == [hit.row for hit in sorted(hits, key=lambda hit: (-hit.score, hit.row))]
    store.close()
