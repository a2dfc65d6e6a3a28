"""Pair mining against brute force and sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.analyze.dedupe import find_connected, measure_overlap, split_words
from munjang.analyze.pairs import mine_pairs
from munjang.errors import UsageError
from munjang.vectors.similarity import similarity


def sample(n: int, d: int = 16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def clustered(n: int, d: int = 24, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return sample(max(1, n // 5), d, seed)[random.integers(0, max(1, n // 5), n)] + sample(n, d, seed + 1) * np.float32(0.3)


def brute_force(vectors: np.ndarray, threshold: float) -> dict[tuple[int, int], float]:
    scores = similarity(vectors, vectors)
    rows, columns = np.nonzero(np.triu(scores >= np.float32(threshold), k=1))
    return {(int(a), int(b)): float(scores[a, b]) for a, b in zip(rows, columns, strict=True)}


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 60), tile=st.integers(1, 70), threshold=st.floats(-1, 1))
def test_every_pair_above_the_threshold_is_found_once(seed: int, n: int, tile: int, threshold: float) -> None:
    vectors = clustered(n, seed=seed)
    found = mine_pairs(vectors, threshold=threshold, top=100_000, tile=tile)
    expected = brute_force(vectors, threshold)
    edge = {pair for pair, score in brute_force(vectors, threshold - 1e-5).items() if abs(score - threshold) < 1e-5}
    assert {(pair.a, pair.b) for pair in found.pairs} ^ expected.keys() <= edge
    assert all(pair.a < pair.b for pair in found.pairs)
    assert [pair.score for pair in found.pairs] == sorted((pair.score for pair in found.pairs), reverse=True)
    assert not found.cut


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), top=st.integers(1, 200), tile=st.integers(1, 30))
def test_the_answer_for_fewer_pairs_is_a_prefix(seed: int, top: int, tile: int) -> None:
    vectors = np.random.default_rng(seed).integers(-2, 3, (40, 3)).astype(np.float32)
    whole = mine_pairs(vectors, threshold=-1, top=100_000, tile=1000)
    part = mine_pairs(vectors, threshold=-1, top=top, tile=tile)
    assert [pair.score for pair in part.pairs] == pytest.approx([pair.score for pair in whole.pairs[:top]], abs=1e-6)
    assert part.cut == (len(whole.pairs) > top)


def test_it_finds_what_sentence_transformers_finds() -> None:
    util = pytest.importorskip("sentence_transformers.util")
    vectors = clustered(700)
    expected = util.paraphrase_mining_embeddings(vectors, top_k=700, max_pairs=10**6)
    expected = [(a, b, score) for score, a, b in expected if score >= 0.7]
    found = mine_pairs(vectors, threshold=0.7, top=100_000, tile=128).pairs
    assert len(found) > 500
    assert {(pair.a, pair.b) for pair in found} == {(min(a, b), max(a, b)) for a, b, _ in expected}
    assert [pair.score for pair in found] == pytest.approx([score for _, _, score in expected], abs=1e-5)


def test_rows_that_are_the_same_are_told_once() -> None:
    texts = ["rain", "sun", "rain", "rain", "much rain"]
    vectors = np.array([[1, 0], [0, 1], [1, 0], [1, 0], [1, 0.1]], dtype=np.float32)
    found = mine_pairs(vectors, texts=texts, threshold=0.9)
    assert found.same == ((0, 2, 3),)
    assert [(pair.a, pair.b) for pair in found.pairs] == [(0, 4)]
    assert found.groups() == [(0, 2, 3, 4)]
    assert mine_pairs(vectors, threshold=0.9).same == ((0, 2, 3),)


def test_a_thousand_equal_rows_make_no_million_pairs() -> None:
    found = mine_pairs(np.ones((1000, 4)), top=10)
    assert tuple(found.pairs) == ()
    assert len(found.same[0]) == 1000


def test_pairs_that_share_too_many_words_do_not_count_and_take_no_place() -> None:
    texts = ["a big cat sleeps", "a big cat slept", "some large feline naps", "a big cat sleeps well"]
    vectors = np.array([[1, 0], [1, 0.01], [1, 0.3], [1, 0.02]], dtype=np.float32)
    found = mine_pairs(vectors, texts=texts, threshold=0.9, top=3, max_overlap=0.2)
    assert {(pair.a, pair.b) for pair in found.pairs} == {(0, 2), (1, 2), (2, 3)}
    assert tuple(mine_pairs(vectors, texts=texts, threshold=0.9, top=1, max_overlap=0.2).pairs) == found.pairs[:1]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_groups_are_the_connected_components(links: list[tuple[int, int]]) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    groups = find_connected(links)
    matrix = sparse.coo_matrix((np.ones(len(links)), ([a for a, _ in links], [b for _, b in links])), shape=(31, 31))
    _, labels = sparse.csgraph.connected_components(matrix, directed=False)
    members = {member for link in links for member in link}
    expected = {tuple(sorted(m for m in members if labels[m] == label)) for label in {labels[m] for m in members}}
    assert set(groups) == expected
    assert sum(map(len, groups)) == len(members)


def test_word_overlap_ignores_case_and_counts_korean_words() -> None:
    assert measure_overlap(split_words("비가 온다"), split_words("비가 많이 온다")) == pytest.approx(2 / 3)
    assert measure_overlap(split_words("RAIN"), split_words("rain!")) == 1
    assert measure_overlap(split_words(""), split_words("…")) == 1


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="2 for 3 vectors"):
        mine_pairs(sample(3), texts=["a", "b"])
    with pytest.raises(UsageError, match="max_overlap"):
        mine_pairs(sample(3), max_overlap=0.5)
    with pytest.raises(UsageError, match="top is 0"):
        mine_pairs(sample(3), top=0)


def test_pairs_are_a_sequence_whatever_way_they_are_looked_at() -> None:
    found = mine_pairs(clustered(60), threshold=0.5).pairs
    whole = list(found)
    assert len(whole) == len(found) > 5
    assert [found[place] for place in range(len(found))] == whole
    assert found[-1] == whole[-1]
    assert found[1:4] == tuple(whole[1:4])
    assert repr(whole[0]) in repr(found)
    assert f"{len(found):,} in all" in repr(found)


@pytest.mark.parametrize("tile", [1, 2, 3, 1_000])
def test_the_words_of_the_right_rows_are_compared_whatever_the_tile(tile):
    texts = ["one two three", "four five six", "one two three four", "seven eight"]
    vectors = [[1.0, 0.0], [1.0, 0.01], [1.0, 0.02], [1.0, 0.03]]
    found = mine_pairs(vectors, texts=texts, max_overlap=0.3, tile=tile)
    assert {(pair.a, pair.b) for pair in found.pairs} == {(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)}
