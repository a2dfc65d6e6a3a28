"""The approximate index: how much it finds, and that nothing is missing where the lists hold too little."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from munjang.library.index_config import Tuning
from munjang.library.ivf_index import Lists, build_lists, fit_lists
from munjang.library.library import Library
from munjang.library.matrix import Matrix, unit
from munjang.library.store import Document, Entry, Passage

pytest.importorskip("faiss")


def clustered(n: int, d: int = 32, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((60, d))
    return unit((centres[random.integers(0, 60, n)] + random.standard_normal((n, d)) * 0.6).astype(np.float32))


def matrix_of(vectors: np.ndarray, *, tail: int = 0, alive: np.ndarray | None = None) -> Matrix:
    edge, rows = len(vectors) - tail, 5 + 3 * np.arange(len(vectors))
    return Matrix(1, rows[:edge], vectors[:edge], rows[edge:], vectors[edge:], alive)


@pytest.fixture(scope="module")
def built() -> tuple[Matrix, Lists]:
    matrix = matrix_of(clustered(20_000))
    return matrix, build_lists(matrix, Tuning())


def recall(found: list, truth: np.ndarray) -> float:
    return float(np.mean([len(set(rows.tolist()) & set(row)) / len(row) for (_, rows), row in zip(found, truth.tolist(), strict=True)]))


def test_the_recall_that_was_asked_for_is_there_on_new_queries(built):
    matrix, lists = built
    queries = clustered(400, seed=1)
    truth = matrix.search(queries, 10)[1]
    found = fit_lists(lists, matrix).search(queries, 10)
    assert recall(found, truth) >= 0.97
    assert lists.probes <= len(lists.centre_LD) // 4


def test_scores_are_those_of_exact_search(built):
    matrix, lists = built
    queries = clustered(20, seed=2)
    for query, (scores, rows) in zip(queries, fit_lists(lists, matrix).search(queries, 5), strict=True):
        at = np.searchsorted(matrix.rows_M, rows)
        np.testing.assert_allclose(scores, matrix.base_MD[at] @ query, atol=1e-6)
        assert (np.diff(scores) <= 0).all()


def test_a_query_alone_gets_what_it_gets_among_others(built):
    matrix, lists = built
    fitted, queries = fit_lists(lists, matrix), clustered(30, seed=3)
    together = fitted.search(queries, 10)
    for query, (_, rows) in zip(queries, together, strict=True):
        assert fitted.search(query[None], 10)[0][1].tolist() == rows.tolist()


@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("kept", [7, 2_000, 20_000])
def test_a_filter_never_leaves_an_answer_short(built, k, kept):
    matrix, lists = built
    among = np.sort(np.random.default_rng(4).choice(20_000, kept, replace=False))
    for _, rows in fit_lists(lists, matrix).search(clustered(5, seed=4), k, among_P=among):
        assert len(set(rows.tolist())) == min(k, kept)
        assert np.isin(rows, matrix.rows_M[among]).all()


def test_rows_that_came_and_went_are_found_and_passed_over(built):
    vectors, lists = clustered(20_000), built[1]
    fresh = clustered(50, seed=5)
    alive = np.flatnonzero(np.arange(20_050) % 7 > 0)
    matrix = matrix_of(np.concatenate([vectors, fresh]), tail=50, alive=alive)
    fitted = fit_lists(lists, matrix)
    assert len(fitted.fresh_P) == (np.arange(20_000, 20_050) % 7 > 0).sum()
    assert fitted.stale(0.1)
    assert not fitted.stale(0.5)
    found = fitted.search(np.concatenate([fresh, vectors[:50]]), 3)
    for place, (scores, rows) in enumerate(found):
        own = 20_000 + place if place < 50 else place - 50
        assert (matrix.rows_M[own] == rows[0]) == (own % 7 > 0)
        assert np.isin(rows, matrix.rows_M[alive]).all()
        assert (scores[0] > 0.9999) == (own % 7 > 0)


def test_a_few_rows_and_zero_rows_are_no_trouble():
    vectors = np.zeros((12, 5), dtype=np.float32)
    vectors[3, 2] = 1
    matrix = matrix_of(vectors)
    [(scores, rows)] = fit_lists(build_lists(matrix, Tuning()), matrix).search(vectors[3:4], 20)
    assert len(rows) == 12
    assert (rows[0], scores[0]) == (matrix.rows_M[3], 1)


def test_a_filter_that_leaves_only_what_is_far_is_answered_in_full(built):
    matrix, lists = built
    [query] = clustered(1, seed=6)
    far = np.sort(np.argsort(matrix.base_MD @ query)[:4_000])
    [(scores, rows)] = fit_lists(lists, matrix).search(query[None], 10, among_P=far)
    exact_scores, exact_rows = matrix.search(query[None], 10, among_P=far)
    assert rows.tolist() == exact_rows[0].tolist()
    np.testing.assert_allclose(scores, exact_scores[0], atol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_so_few_rows_that_one_list_holds_them_are_all_found(count):
    matrix = matrix_of(clustered(count))
    lists = build_lists(matrix, Tuning())
    assert (len(lists.centre_LD), lists.probes) == (1, 1)
    [(scores, rows)] = fit_lists(lists, matrix).search(matrix.base_MD[-1:], 5)
    assert sorted(rows.tolist()) == matrix.rows_M.tolist()
    assert rows[0] == matrix.rows_M[-1]
    assert scores[0] == pytest.approx(1, abs=1e-6)


def test_lists_are_read_back_from_their_file_and_not_built_again(tmp_path, make_encoder):
    tuning = Tuning(cache_from=1, approximate_from=100)
    texts = [{"id": str(number), "text": f"rain {number} river {number % 7}"} for number in range(300)]
    with Library.open(tmp_path / "a.db", make_encoder(), analyser="bigrams", tuning=tuning) as library:
        library.add(texts)
        library.prepare()
        asked = [(hit.id, hit.score) for hit in library.search("river 3", k=5, exact=False)]
    [file] = (tmp_path / "a.db.cache").glob("lists*")
    before = file.stat().st_mtime_ns
    with Library.open(tmp_path / "a.db", make_encoder(), tuning=tuning) as again:
        assert [(hit.id, hit.score) for hit in again.search("river 3", k=5, exact=False)] == asked
        again.prepare()
    assert file.stat().st_mtime_ns == before


class NoModel:
    name, fingerprint, dimension = "none", "none", 384

    def encode(self, texts):
        return np.ones((len(list(texts)), 384), dtype=np.float32)


@pytest.mark.slow
def test_a_library_of_a_hundred_thousand_answers_its_first_query_within_a_second(tmp_path: Path):
    vectors = np.random.default_rng(0).standard_normal((100_000, 384), dtype=np.float32)
    entries = (
        Entry(Document(str(i), f"text {i}", {}, str(i)), (Passage(0, 4, ("text", str(i))),), row[None]) for i, row in enumerate(vectors)
    )
    with Library.open(tmp_path / "many.db", NoModel(), analyser="bigrams") as library:
        with library.store.writer("test"):
            library.store.put(entries)
        library.prepare()
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with Library.open(tmp_path / "many.db", NoModel(), create=False) as library:
            assert len(library.search("text")) == 10
        seconds.append(time.perf_counter() - started)
    print(f"open and first query: {min(seconds):.3f} s")
    assert min(seconds) < 1
