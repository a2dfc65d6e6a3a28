"""top_k against brute force with a stable sort, faiss and sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from munjang.errors import InputError, UsageError
from munjang.vectors import topk
from munjang.vectors.similarity import similarity
from munjang.vectors.topk import select_top, top_k

METRICS = ("cosine", "dot", "euclidean", "manhattan")
small_whole_numbers = st.integers(-2, 2)  # products are exact in float32, and ties are everywhere


def sample(n: int, d: int = 32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def brute_force(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), order


@settings(max_examples=150, deadline=None)
@given(
    corpus=st.integers(1, 60).flatmap(lambda m: arrays(np.float32, (m, 3), elements=small_whole_numbers)),
    queries=arrays(np.float32, (4, 3), elements=small_whole_numbers),
    k=st.integers(1, 70),
    block=st.integers(1, 64),
    metric=st.sampled_from(["dot", "manhattan"]),
)
def test_it_equals_brute_force_with_a_stable_sort(corpus: np.ndarray, queries: np.ndarray, k: int, block: int, metric: str) -> None:
    scores, indices = top_k(queries, corpus, k=k, metric=metric, block=block)
    expected_scores, expected_indices = brute_force(similarity(queries, corpus, metric=metric), k)
    assert np.array_equal(indices, expected_indices)
    assert np.array_equal(scores, expected_scores)
    assert scores.dtype == np.float32
    assert indices.dtype == np.int64


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 40),
    block=st.sampled_from([3, 16, 4096]),
    metric=st.sampled_from(METRICS),
)
def test_the_answer_for_k_is_a_prefix_of_the_answer_for_one_more(seed: int, k: int, block: int, metric: str) -> None:
    queries, corpus = sample(3, 8, seed), np.repeat(sample(25, 8, seed + 1), 2, axis=0)
    scores, indices = top_k(queries, corpus, k=k, metric=metric, block=block)
    more_scores, more_indices = top_k(queries, corpus, k=k + 1, metric=metric, block=block)
    assert np.array_equal(indices, more_indices[:, :k])
    assert np.array_equal(scores, more_scores[:, :k])


@pytest.mark.parametrize("metric", METRICS)
def test_several_blocks_and_query_groups_give_the_best_rows(metric: str) -> None:
    queries, corpus = sample(1100, 16), sample(5000, 16, seed=1)
    scores, indices = top_k(queries, corpus, k=12, metric=metric, block=700)
    all_scores = similarity(queries, corpus, metric=metric)
    np.testing.assert_allclose(scores, brute_force(all_scores, 12)[0], atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(all_scores, indices, axis=1), scores, atol=1e-4)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_it_equals_faiss_and_sentence_transformers() -> None:
    faiss = pytest.importorskip("faiss")
    util = pytest.importorskip("sentence_transformers.util")
    queries, corpus = sample(50, 64), sample(6000, 64, seed=1)
    index = faiss.IndexFlatIP(64)
    index.add(corpus)
    expected_scores, expected_indices = index.search(queries, 10)
    scores, indices = top_k(queries, corpus, k=10, metric="dot")
    assert np.array_equal(indices, expected_indices)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)
    hits = util.semantic_search(queries, corpus, top_k=10)
    assert top_k(queries, corpus, k=10)[1].tolist() == [[hit["corpus_id"] for hit in row] for row in hits]


@pytest.mark.parametrize("ascending", [True, False])
def test_a_sorted_corpus_is_no_trap(ascending: bool) -> None:
    corpus = np.arange(9000, dtype=np.float32)[:, None]
    if not ascending:
        corpus = corpus[::-1]
    scores, indices = top_k([[1.0], [-1.0]], corpus, k=3, metric="dot", block=1000)
    assert scores.tolist() == [[8999, 8998, 8997], [0, -1, -2]]
    assert corpus[indices[0], 0].tolist() == [8999, 8998, 8997]


def test_a_corpus_of_one_repeated_row_answers_with_its_first_rows() -> None:
    _, indices = top_k(np.ones((2, 8)), np.ones((9001, 8)), k=5)
    assert indices.tolist() == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("k", [1, 4, 50])
def test_exclude_self_never_answers_with_the_row_itself(k: int) -> None:
    rows = sample(40)
    scores, indices = top_k(rows, rows, k=k, exclude_self=True, block=11)
    assert indices.shape == (40, min(k, 39))
    assert not (indices == np.arange(40)[:, None]).any()
    full = similarity(rows, rows)
    np.fill_diagonal(full, -np.inf)
    np.testing.assert_allclose(scores, brute_force(full, min(k, 39))[0], atol=1e-6)


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_threads_do_not_change_the_answer(metric: str) -> None:
    queries, corpus = sample(1500, 8), sample(400, 8, seed=1)
    one, two = (top_k(queries, corpus, k=5, metric=metric, threads=threads) for threads in (1, 2))
    assert np.array_equal(one[1], two[1])


def test_a_float16_corpus_on_disk_is_searched_like_one_in_memory(tmp_path: Path) -> None:
    corpus = sample(300).astype(np.float16)
    np.save(tmp_path / "corpus.npy", corpus)
    on_disk = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    assert np.array_equal(top_k(sample(3), on_disk, k=5, block=64)[1], top_k(sample(3), corpus.astype(np.float32), k=5, block=64)[1])


def test_fewer_rows_than_k_and_empty_sides_are_fine() -> None:
    assert top_k(sample(2), sample(3), k=10)[1].shape == (2, 3)
    assert top_k(sample(2), sample(0), k=10)[1].shape == (2, 0)
    assert top_k(sample(0), sample(3), k=2)[0].shape == (0, 2)
    assert top_k(sample(1), sample(1), k=2, exclude_self=True)[0].shape == (1, 0)


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        top_k(sample(1), sample(1), k=0)
    with pytest.raises(UsageError, match=r"\(1, 32\).*\(1, 5\)"):
        top_k(sample(1), sample(1, 5), k=1)
    with pytest.raises(UsageError, match="exclude_self"):
        top_k(sample(1), sample(2), k=1, exclude_self=True)
    with pytest.raises(UsageError, match="metric"):
        top_k(sample(1), sample(2), k=1, metric="l2")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", METRICS)
def test_a_row_that_is_not_finite_is_named(value: float, metric: str) -> None:
    corpus = sample(50)
    corpus[37, 2] = value
    with pytest.raises(InputError, match="corpus row 37"):
        top_k(sample(2), corpus, k=3, metric=metric, block=10)


def test_products_beyond_float32_are_refused() -> None:
    with pytest.raises(InputError, match="scores overflow float32"):
        top_k([[1e30]], np.array([[-1e30], [1.0]]), k=2, metric="dot")


def test_odd_corpora_and_numbers_of_threads_are_refused() -> None:
    with pytest.raises(UsageError, match="threads is 0"):
        top_k(sample(1), sample(1), k=1, threads=0)
    with pytest.raises(UsageError, match=r"corpus: found shape \(1, 2, 3\)"):
        top_k(sample(1), np.zeros((1, 2, 3)), k=1)
    with pytest.raises(UsageError, match="of <U1"):
        top_k(sample(1), np.array([["a"]]), k=1)
    with pytest.raises(UsageError, match="block is 0"):
        top_k(sample(1), sample(1), k=1, block=0)


def test_a_corpus_with_more_rows_than_an_index_can_count_is_refused_before_it_is_read() -> None:
    def never(rows: slice, columns: slice, out: np.ndarray) -> None:
        raise AssertionError("nothing should be read")

    with pytest.raises(UsageError, match="4,294,967,296 rows"):
        select_top(never, shape=(1, 2**32), k=1)


def test_exclude_self_holds_in_every_group_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topk, "_QUERIES", 16)
    rows = np.random.default_rng(4).standard_normal((70, 8), dtype=np.float32)
    scores = similarity(rows, rows)
    np.fill_diagonal(scores, -np.inf)
    _, indices = top_k(rows, rows, k=3, exclude_self=True, block=32)
    np.testing.assert_array_equal(indices, np.argsort(-scores, axis=1, kind="stable")[:, :3])


def test_the_first_of_several_bad_rows_is_named() -> None:
    corpus = np.ones((6, 3), dtype=np.float32)
    corpus[2, 1] = corpus[5, 0] = np.nan
    with pytest.raises(InputError, match="corpus row 2:"):
        top_k(np.ones((2, 3)), corpus, k=1)


def test_one_row_that_may_not_answer_itself_gives_nothing() -> None:
    scores, indices = top_k(np.ones((1, 3)), np.ones((1, 3)), k=2, exclude_self=True)
    assert (scores.shape, indices.shape) == ((1, 0), (1, 0))
    scores, indices = top_k(np.ones((0, 3)), np.ones((0, 3)), k=2, exclude_self=True)
    assert (scores.shape, indices.shape) == ((0, 0), (0, 0))
