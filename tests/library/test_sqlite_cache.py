"""What is kept in memory of a commit gives the rows and the scores that SQLite gives, and never outlives the commit."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.library import sqlite_cache, sqlite_read
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Document, Entry, NewMetadata, Passage, Settings
from munjang.library.where import AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf

WORDS = ["바다", "산", "snow", "wind", "a-b", "C++", "x", "rain's", "눈", "비"]
VALUES = [0, 1, 2.5, "1", "2.50", "sea", "SEA", "", True, None, ["sea", 1], {"k": 1}, 10**17, "바다 100%"]
KEYS = ["kind", "year", "a b", 'q"uote', "id", "text"]


def entry(id: str, chance: random.Random) -> Entry:
    passages = tuple(Passage(0, 1, tuple(chance.choices(WORDS, k=chance.randint(1, 8)))) for _ in range(chance.randint(1, 3)))
    metadata = {key: chance.choice(VALUES) for key in KEYS[:4] if chance.random() < 0.7}
    return Entry(Document(id, f"text {id}", metadata, id), passages, np.ones((len(passages), 2), dtype=np.float32))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    path = tmp_path_factory.mktemp("cache") / "a.db"
    store = SqliteStore.open(path, create_with=Settings("m", "f", 2, "bigrams", 100, 10))
    chance = random.Random(1)
    with store.writer("test"):
        store.put([entry(str(number), chance) for number in range(150)])
        store.delete(["3", "77"])
    return store


keys = st.sampled_from(KEYS)
scalars = st.sampled_from([0, 1, 2.5, "1", "sea", "SEA", "", True, "3", 10**17])
tests = (
    st.builds(Compare, keys, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), scalars)
    | st.builds(OneOf, keys, st.lists(scalars, max_size=3).map(tuple))
    | st.builds(Like, keys, st.sampled_from(["s%", "%A", "_", "%100%"]))
    | st.builds(Contains, keys, scalars)
    | st.builds(IsNull, keys)
)


def combine(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(AllOf, several) | st.builds(AnyOf, several)


conditions = st.recursive(tests, combine)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=conditions, words=st.lists(st.sampled_from(WORDS), max_size=5), k=st.integers(1, 40))
def test_filters_and_words_select_what_sqlite_selects(store: SqliteStore, where: Condition, words: list[str], k: int) -> None:
    store.rows(IsNull("kind"))
    store.lexical(["snow"], 1)  # from the second question on the cache answers
    with store._connections.snapshot() as connection:
        assert store.rows(where).tolist() == sqlite_read.read_rows(connection, where).tolist()
        for condition in (None, where):
            assert store.lexical(words, k, where=condition) == sqlite_read.read_lexical(connection, words, k, condition)
        assert store.word_frequencies(words) == sqlite_read.read_word_frequencies(connection, words)


def test_the_first_question_of_a_commit_is_left_to_sqlite(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = SqliteStore.open(store.path)
    asked: list[str] = []
    for name in ("read_lexical", "read_rows"):
        real = getattr(sqlite_cache, name)
        monkeypatch.setattr(sqlite_cache, name, lambda *given, real=real, name=name: asked.append(name) or real(*given))
    fresh.lexical(["snow"], 3)
    fresh.rows(Compare("year", "=", 1))
    assert asked == ["read_lexical", "read_rows"]
    fresh.rows(Compare("year", "=", 1))
    assert asked == ["read_lexical", "read_rows"]  # a filter that was asked before is known


def test_what_is_kept_does_not_outlive_its_commit(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db", create_with=Settings("m", "f", 2, "bigrams", 100, 10))
    chance = random.Random(2)
    with store.writer("test"):
        store.put([entry(str(number), chance) for number in range(20)])
        other = SqliteStore.open(tmp_path / "a.db")
        for number in range(6):
            for _ in range(3):
                assert other.lexical(["snow", "눈"], 99) == SqliteStore.open(tmp_path / "a.db").lexical(["snow", "눈"], 99)
                where = Compare("year", "=", number % 2)
                assert other.rows(where).tolist() == SqliteStore.open(tmp_path / "a.db").rows(where).tolist()
                other.rows(IsNull("year"))
            store.put([entry(str(100 + number), chance), NewMetadata(str(number), {"year": 1})])
            store.delete([str(number + 10)])


def test_a_key_with_very_many_values_is_left_to_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_cache, "MOST_VALUES", 5)
    store = SqliteStore.open(tmp_path / "a.db", create_with=Settings("m", "f", 2, "bigrams", 100, 10))
    with store.writer("test"):
        store.put(
            Entry(Document(str(n), "t", {"n": n, "half": n % 2}, str(n)), (Passage(0, 1, ("x",)),), np.ones((1, 2), np.float32))
            for n in range(20)
        )
    for bound in (5, 6, 7):
        assert len(store.rows(Compare("n", "<", bound))) == bound
        assert len(store.rows(AllOf((Compare("n", "<", bound), Compare("half", "=", 0))))) == -(-bound // 2)


def test_long_lists_of_passages_are_forgotten_first_in_first_out(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_cache, "MOST_POSTINGS", 100)
    fresh = SqliteStore.open(store.path)
    expected = SqliteStore.open(store.path).lexical(WORDS, 30)
    for _ in range(3):
        assert fresh.lexical(WORDS, 30) == expected
    assert sum(len(each.positions) for each in fresh._cache._commit.postings.values()) <= 200
