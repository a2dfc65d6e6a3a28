"""Lists of words read from FTS5's index hold the passages and, to the last digit, the scores that FTS5 itself gives."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.library import sqlite_cache, sqlite_postings, sqlite_read
from munjang.library.sqlite_postings import read_norms, read_posting
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Document, Entry, Passage, Scored, Settings

PLAIN = ["바다", "산", "눈", "snow", "wind", "x", "2024", "大學"]
OTHERS = ["C++", "a-b", "Snow", "rain's", "İ", "ⅷ", "é", "カナ", "ㅋㅋ", "😀"]
EVERYWHERE = "everywhere"


def entry(id: str, words: list[str]) -> Entry:
    return Entry(Document(id, "text", {}, id), (Passage(0, 1, tuple(words)),), np.ones((1, 2), dtype=np.float32))


def random_entry(id: str, chance: random.Random) -> Entry:
    length = 400 if chance.random() < 0.1 else chance.randint(0, 12)  # lengths of one byte and of two
    words = chance.choices(PLAIN + OTHERS, k=length)
    return entry(id, [*words, EVERYWHERE] if chance.random() < 0.9 else words)


def open_new(path: Path) -> SqliteStore:
    return SqliteStore.open(path, create_with=Settings("m", "f", 2, "bigrams", 100, 10))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    store = open_new(tmp_path_factory.mktemp("postings") / "a.db")
    chance = random.Random(1)
    with store.writer("test"):
        for part in range(3):  # several segments of the index
            store.put([random_entry(f"{part} {number}", chance) for number in range(60)])
        store.delete(["0 3", "2 59"])
        store.put([random_entry("1 7", chance)])
    return store


@pytest.mark.parametrize("word", [*PLAIN, *OTHERS, EVERYWHERE, "nowhere"])
def test_a_list_is_what_fts5_finds(store: SqliteStore, word: str) -> None:
    with store._connections.snapshot() as connection:
        rows_P = sqlite_read.read_rows(connection, None)
        norms_P = read_norms(connection, rows_P)
        assert norms_P is not None
        posting = read_posting(connection, word, rows_P, norms_P)
        expected = {each.row: each.score for each in sqlite_read.read_lexical(connection, [word], 1_000, None)}
    assert dict(zip(rows_P[posting.positions].tolist(), posting.scores.tolist(), strict=True)) == expected


def test_plain_words_need_no_row_from_fts5(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_postings, "_ask_fts5", None)
    with store._connections.snapshot() as connection:
        rows_P = sqlite_read.read_rows(connection, None)
        for word in [*PLAIN, EVERYWHERE]:
            assert len(read_posting(connection, word, rows_P, read_norms(connection, rows_P)).positions)


def test_an_index_of_other_passages_is_left_to_fts5(store: SqliteStore) -> None:
    with store._connections.snapshot() as connection:
        rows_P = sqlite_read.read_rows(connection, None)
        assert read_norms(connection, rows_P[:-1]) is None
        assert read_norms(connection, rows_P[:0]) is None
        fewer_P, norms_P = rows_P[:-5], np.ones(len(rows_P) - 5)
        posting = read_posting(connection, EVERYWHERE, fewer_P, norms_P)
        assert posting.positions.max() < len(fewer_P)


def ask_as_another_process(path: Path, words: list[str]) -> list[Scored]:
    """Ask SQLite alone."""
    fresh = SqliteStore.open(path)
    with fresh._connections.snapshot() as connection:
        return sqlite_read.read_lexical(connection, words, 50, None)


WRITE = """
import sys; sys.path.insert(0, sys.argv[2])
import random
from pathlib import Path
from munjang.library.sqlite_store import SqliteStore
from test_sqlite_postings import random_entry
store = SqliteStore.open(Path(sys.argv[1]))
with store.writer("test"):
    store.put([random_entry("from another process", random.Random(3))])
"""


def test_answers_follow_every_kind_of_change(tmp_path: Path) -> None:
    store, chance = open_new(tmp_path / "a.db"), random.Random(2)
    other = SqliteStore.open(tmp_path / "a.db")
    words = [EVERYWHERE, "snow", "C++", "바다"]

    def check() -> None:
        for _ in range(3):
            for some in (words, words[1:2], words[2:]):
                assert other.lexical(some, 50) == ask_as_another_process(tmp_path / "a.db", some)

    check()  # nothing is there yet
    with store.writer("test"):
        store.put([random_entry(str(number), chance) for number in range(30)])
    check()
    with store.writer("test"):
        store.put([random_entry(str(number), chance) for number in range(5, 12)])  # replaced
    check()
    with store.writer("test"):
        store.delete([str(number) for number in range(0, 30, 3)])
    check()
    with store.writer("test"):
        store.compact()
    check()
    subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "a.db"), str(Path(__file__).parent)], check=True)
    check()


def test_a_first_question_of_frequent_words_is_answered_from_lists(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ask_as_another_process(store.path, [EVERYWHERE, "snow"])
    monkeypatch.setattr(sqlite_cache, "read_lexical", None)
    fresh = SqliteStore.open(store.path)
    assert fresh.lexical([EVERYWHERE, "snow"], 50) == expected
    assert fresh.word_frequencies([EVERYWHERE]) == (fresh.count()[1], [len(ask_all(store, EVERYWHERE))])


def ask_all(store: SqliteStore, word: str) -> list[Scored]:
    with store._connections.snapshot() as connection:
        return sqlite_read.read_lexical(connection, [word], 10_000, None)


@given(st.lists(st.integers(0, 2**40)))
def test_numbers_of_variable_length_are_read(numbers: list[int]) -> None:
    def write(number: int) -> bytes:
        parts = [number & 0x7F]
        while number := number >> 7:
            parts.append(number & 0x7F | 0x80)
        return bytes(reversed(parts))

    assert sqlite_postings._decode_varints(b"".join(map(write, numbers))).tolist() == numbers
