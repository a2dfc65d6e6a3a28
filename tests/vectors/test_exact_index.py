"""ExactIndex against top_k, which is brute force, on corpora that are kind to the first pass and on such as are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, UsageError
from munjang.vectors import coarse, exact_index, int8_product
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.similarity import prepared, similarity
from munjang.vectors.topk import top_k


@pytest.fixture(autouse=True)
def small_corpora_too(monkeypatch: pytest.MonkeyPatch) -> None:
    if not int8_product.available():
        pytest.skip("this processor has no exact integer product, so there is no first pass to test")
    monkeypatch.setattr(exact_index, "SMALLEST", 1)


def sample(n: int, d: int = 48, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


CORPORA = {
    "even": lambda: sample(6000),
    "of all lengths": lambda: sample(6000) * np.random.default_rng(5).uniform(0.01, 100, (6000, 1)).astype(np.float32),
    "far from zero": lambda: sample(6000) + 30,
    "with one loud dimension": lambda: sample(6000) * np.where(np.arange(48) == 7, 500, 1).astype(np.float32),
    "with rare outliers": lambda: np.where(np.random.default_rng(4).random((6000, 48)) < 1e-4, 1000, sample(6000)).astype(np.float32),
    "in tight clusters": lambda: np.repeat(sample(20), 300, axis=0) + sample(6000, seed=3) * np.float32(0.01),
    "of few distinct rows": lambda: np.repeat(sample(6), 1000, axis=0),
    "getting better": lambda: np.sort(sample(6000), axis=0),
    "with constant and empty dimensions": lambda: sample(6000) * (np.arange(48) > 9) + (np.arange(48) == 3),
    "of zeros": lambda: np.zeros((3000, 48), dtype=np.float32),
}


@pytest.mark.parametrize("metric", ["cosine", "dot"])
@pytest.mark.parametrize("kind", CORPORA)
def test_the_answer_is_that_of_brute_force(kind: str, metric: str) -> None:
    corpus = CORPORA[kind]().astype(np.float32)
    queries = np.concatenate([sample(90, seed=9), corpus[:30] + sample(30, seed=8) * np.float32(0.01)])
    scores, indices = ExactIndex(corpus, metric=metric).search(queries, k=10)
    expected, _ = top_k(queries, corpus, k=10, metric=metric)
    scale = 1 if metric == "cosine" else float(np.abs(queries).max() * np.abs(corpus).max() * 48) or 1
    np.testing.assert_allclose(scores, expected, atol=3e-6 * scale, rtol=0)
    np.testing.assert_allclose(
        np.take_along_axis(similarity(queries, corpus, metric=metric), indices, 1), scores, atol=3e-6 * scale, rtol=0
    )
    assert all(len(set(row)) == 10 for row in indices.tolist())


@example(seed=0, rows=2567, d=4, k=1, top=3)  # the lower of two equal rows came second, from a later look at the survivors
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(100, 3000), d=st.integers(1, 40), k=st.integers(1, 20), top=st.integers(1, 3))
def test_whole_numbers_give_the_very_same_indices(seed: int, rows: int, d: int, k: int, top: int) -> None:
    random = np.random.default_rng(seed)
    corpus, queries = random.integers(-top, top + 1, (rows, d)), random.integers(-top, top + 1, (5, d))
    found = ExactIndex(corpus, metric="dot").search(queries, k=k)
    expected = top_k(queries, corpus, k=k, metric="dot")
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 64), tail=st.floats(0.5, 30), shift=st.floats(-3, 3))
def test_no_pair_scores_beyond_its_bound(seed: int, d: int, tail: float, shift: float) -> None:
    random = np.random.default_rng(seed)
    corpus = (random.standard_t(tail, (300, d)) + shift).astype(np.float32)
    queries = prepared(random.standard_normal((7, d)).astype(np.float32), "dot")
    rows = coarse.coarse_rows(corpus, "dot")
    asked = coarse.coarse_queries(queries, rows.steps)
    products = int8_product.product_with(asked.bytes_DN)(rows.bytes_MD)
    row, query = (places.reshape(-1) for places in np.indices(products.shape))
    exact = (queries.astype(np.float64) @ corpus.T.astype(np.float64))[query, row]
    assert (asked.at_most(products.reshape(-1), query, row, rows) >= exact).all()
    floor = np.median(queries @ corpus.T, axis=1)
    assert (products[row, query] > asked.least(floor, rows, 0)[query])[exact > floor[query]].all()


def test_the_integer_product_is_exact() -> None:
    left = np.random.default_rng(0).integers(0, 256, (33, 70)).astype(np.uint8)
    right = np.random.default_rng(1).integers(-127, 128, (70, 21)).astype(np.int8)
    expected = (left.astype(np.int64) - int8_product.ZERO) @ right.astype(np.int64)
    assert np.array_equal(int8_product.product_with(right)(left), expected)


def test_threads_and_query_groups_do_not_change_the_answer() -> None:
    index, queries = ExactIndex(sample(5000)), sample(700, seed=1)
    one, two = index.search(queries, k=7, threads=1), index.search(queries, k=7, threads=2)
    assert np.array_equal(one[1], two[1])
    assert np.array_equal(one[0], two[0])


def test_a_corpus_on_disk_is_searched_like_one_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "corpus.npy", sample(3000).astype(np.float16))
    on_disk = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    assert np.array_equal(ExactIndex(on_disk).search(sample(3), k=5)[1], ExactIndex(np.array(on_disk)).search(sample(3), k=5)[1])


def test_without_an_integer_product_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = sample(3000), sample(9, seed=2)
    expected = ExactIndex(corpus).search(queries, k=4)[1]
    monkeypatch.setattr(exact_index, "available", lambda: False)
    assert np.array_equal(ExactIndex(corpus).search(queries, k=4)[1], expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(value: float) -> None:
    corpus = sample(2500)
    corpus[2037, 2] = value
    with pytest.raises(InputError, match="corpus row 2037"):
        ExactIndex(corpus)


def test_odd_requests_are_answered_or_refused_like_top_k() -> None:
    index = ExactIndex(sample(30))
    assert len(index) == 30
    assert index.search(sample(2), k=100)[1].shape == (2, 30)
    assert index.search(sample(0), k=3)[1].shape == (0, 3)
    assert ExactIndex(sample(0)).search(sample(2), k=3)[1].shape == (2, 0)
    with pytest.raises(UsageError, match="k is 0"):
        index.search(sample(2), k=0)
    with pytest.raises(UsageError, match="last dimension"):
        index.search(sample(2, d=7), k=1)
    with pytest.raises(UsageError, match="cosine and dot"):
        ExactIndex(sample(3), metric="euclidean")


def test_corpora_that_are_no_rows_of_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match=r"found shape \(1, 2, 3\)"):
        ExactIndex(np.zeros((1, 2, 3)))
    with pytest.raises(UsageError, match="of <U1"):
        ExactIndex(np.array([["a"]]))
    with pytest.raises(UsageError, match="metric 'l2' is unknown"):
        ExactIndex(sample(3), metric="l2")  # type: ignore[arg-type]
    assert ExactIndex(np.zeros((9, 0), dtype=np.float32)).search(np.zeros((1, 0)), k=2)[1].tolist() == [[0, 1]]


def test_a_floor_that_nothing_has_set_lets_every_row_through_and_an_endless_one_none() -> None:
    rows = coarse.coarse_rows(sample(50), "dot")
    asked = coarse.coarse_queries(sample(2, seed=1), rows.steps)
    products = int8_product.product_with(asked.bytes_DN)(rows.bytes_MD)
    passed = products > asked.least(np.float32([-np.inf, np.inf]), rows, 0)
    assert passed[:, 0].all()
    assert not passed[:, 1].any()
