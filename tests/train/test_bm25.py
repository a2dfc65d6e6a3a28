"""BM25 is its formula, written out slowly, and orders texts by it."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.train.augment import Bm25, split_pieces

TEXTS = st.lists(st.lists(st.sampled_from("rain sun snow 비가 와요 눈이 the".split()), max_size=8).map(" ".join), min_size=1, max_size=12)  # noqa: SIM905


def by_the_formula(texts: list[str], query: str, k1: float = 1.2, b: float = 0.75) -> list[float]:
    documents = [split_pieces(text) for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    made = []
    for document in documents:
        score = 0.0
        for piece in split_pieces(query):
            n = sum(piece in other for other in documents)
            f = document.count(piece)
            if f:
                rarity = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
                score += rarity * f * (k1 + 1) / (f + k1 * (1 - b + b * len(document) / mean))
        made.append(score)
    return made


@settings(deadline=None)
@given(TEXTS, st.lists(st.sampled_from(["rain", "sun", "the", "비가", "other"]), max_size=4).map(" ".join))
def test_scores_are_the_formula(texts: list[str], query: str) -> None:
    np.testing.assert_allclose(Bm25(texts).scores(query), by_the_formula(texts, query), atol=1e-12)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 5))
def test_the_best_are_those_with_the_highest_scores_and_k_is_a_prefix_of_k_plus_one(texts: list[str], k: int) -> None:
    index = Bm25(texts)
    scores = index.scores("the rain 비가")
    ordered = sorted((row for row in range(len(texts)) if scores[row] > 0 and row != 0), key=lambda row: (-scores[row], row))
    assert index.best("the rain 비가", k=k, exclude=0) == ordered[:k]
    assert index.best("the rain 비가", k=k + 1, exclude=0)[:k] == ordered[:k]


def test_one_word_weighs_in_each_text_as_in_sqlite() -> None:
    texts = [
        "rain",
        "the rain is cold",
        "rain and rain and rain",
        "snow",
        "a long day with tea and bread and snow and a little rain",
        "sun",
        "tea",
    ]
    store = sqlite3.connect(":memory:")
    try:
        store.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FTS5")
    store.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
    found = dict(store.execute("SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH 'snow'").fetchall())
    store.close()
    # the two differ in how they count a word's rarity, which is one factor for all texts
    theirs = np.array([found.get(row, 0.0) for row in range(len(texts))])
    ours = Bm25(texts).scores("snow")
    np.testing.assert_allclose(ours / ours.max(), theirs / theirs.max(), atol=1e-6)


def test_korean_words_meet_whatever_hangs_on_them() -> None:
    index = Bm25(["고양이가 창가에서 졸고 있다", "기차는 세 시간 걸린다", "고양이는 물을 싫어한다"])
    assert index.best("고양이를 보았다", k=5) == [2, 0]


def test_nothing_in_nothing_out() -> None:
    assert Bm25(["", "?!"]).best("rain", k=3) == []
