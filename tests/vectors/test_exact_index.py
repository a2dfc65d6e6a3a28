"""ExactIndex against top_k, which is brute force, on corpora that are kind to the first pass and on such as are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, UsageError
from munjang.vectors import coarse, exact_index
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.similarity import prepare_rows, similarity
from munjang.vectors.topk import LARGEST_INDEX, top_k


@pytest.fixture(autouse=True, params=[0, 1000], ids=["together", "one by one"])
def small_corpora_too(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if not coarse.is_available():
        pytest.skip("this processor has no exact integer product, so there is no first pass to test")
    monkeypatch.setattr(exact_index, "SMALLEST", 1)
    monkeypatch.setattr(exact_index, "FEW_QUERIES", request.param)


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
    queries = prepare_rows(random.standard_normal((7, d)).astype(np.float32), "dot")
    rows = coarse.round_rows(corpus, "dot")
    asked = coarse.round_queries(queries, rows.steps)
    products = coarse.make_product(asked.bytes_DN)(rows.bytes_MD)
    row, query = (places.reshape(-1) for places in np.indices(products.shape))
    exact = (queries.astype(np.float64) @ corpus.T.astype(np.float64))[query, row]
    assert (asked.at_most(products.reshape(-1), query, row, rows) >= exact).all()
    floor = np.median(queries @ corpus.T, axis=1)
    assert (products[row, query] > asked.least(floor, rows, 0)[query])[exact > floor[query]].all()


WHOLE_NUMBERS = {
    "even": lambda random: random.integers(-9, 10, (400, 6)),
    "getting better": lambda random: np.sort(random.integers(-9, 10, (400, 6)), axis=0),
    "of few distinct rows": lambda random: random.integers(-9, 10, (5, 6))[random.integers(0, 5, 400)],
    "with rare outliers": lambda random: np.where(random.random((400, 6)) < 0.01, 500, random.integers(-9, 10, (400, 6))),
    "with one crowded block": lambda random: np.where(np.arange(400)[:, None] // 32 == 3, 7, 1) * random.integers(-9, 10, (400, 6)),
}


def small_blocks(patch: pytest.MonkeyPatch, *, crowded: float, rounding: float = 1) -> list[int]:
    """Make blocks of 32 rows and return a list that grows by the start of each block that is scored by a product, which rounds badly."""
    for module in (coarse, exact_index):
        patch.setattr(module, "ROWS", 32)
    patch.setattr(coarse, "_SAMPLE", 40)
    patch.setattr(exact_index, "BLOCK", 50)
    patch.setattr(exact_index, "_CROWDED", crowded)
    starts: list[int] = []
    exact = exact_index.Walk._scores

    def scores(walk: exact_index.Walk, start: int, count: int) -> np.ndarray:
        starts.append(start)
        return exact(walk, start, count) * np.float32(rounding)

    patch.setattr(exact_index.Walk, "_scores", scores)
    return starts


@pytest.mark.parametrize("crowded", [0, 1 / 32, 1], ids=["float32 blocks", "both ways", "pairs only"])
@pytest.mark.parametrize("kind", WHOLE_NUMBERS)
def test_whichever_way_a_block_goes_the_answer_is_that_of_a_sort(monkeypatch: pytest.MonkeyPatch, kind: str, crowded: float) -> None:
    small_blocks(monkeypatch, crowded=crowded)
    random = np.random.default_rng(11)
    corpus, queries = WHOLE_NUMBERS[kind](random), random.integers(-9, 10, (7, 6))
    every = queries @ corpus.T
    order = np.argsort(-every, axis=1, kind="stable")
    index = ExactIndex(corpus, metric="dot")
    for k in (1, 5, 12, 16, 17, 30, 40, 100):  # around the half of a block, and more than a block
        scores, indices = index.search(queries, k=k)
        assert np.array_equal(indices, order[:, :k])
        assert np.array_equal(scores, np.take_along_axis(every, indices, axis=1))


@pytest.mark.parametrize("crowded", [0, 1 / 32, 1], ids=["float32 blocks", "both ways", "pairs only"])
@pytest.mark.parametrize("kind", WHOLE_NUMBERS)
def test_how_a_product_of_blocks_rounds_is_not_seen_in_the_scores(monkeypatch: pytest.MonkeyPatch, kind: str, crowded: float) -> None:
    small_blocks(monkeypatch, crowded=crowded, rounding=1 + 1e-6)
    random = np.random.default_rng(12)
    corpus, queries = WHOLE_NUMBERS[kind](random), random.integers(-9, 10, (7, 6))
    best_first = -np.sort(-(queries @ corpus.T), axis=1)
    index = ExactIndex(corpus, metric="dot")
    for k in (1, 5, 12, 16, 17, 30, 40, 100):
        assert np.array_equal(index.search(queries, k=k)[0], best_first[:, :k])


def test_one_crowded_block_is_enough_to_score_the_winners_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_index, "FEW_QUERIES", 0)
    starts = small_blocks(monkeypatch, crowded=1 / 32, rounding=1 + 1e-6)
    corpus = np.zeros((400, 2), dtype=np.int64)
    corpus[:3, 0], corpus[96:128, 0], corpus[300, 0] = 50, np.arange(100, 132), 200
    scores, indices = ExactIndex(corpus, metric="dot").search([[1, 0]], k=3)
    assert starts == [96]
    assert scores.tolist() == [[200, 131, 130]]
    assert indices.tolist() == [[300, 127, 126]]


def test_a_query_without_survivors_does_not_take_those_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, crowded=1)
    corpus = np.zeros((400, 2), dtype=np.int64)
    corpus[:32, 0], corpus[:32, 1], corpus[200:203, 1] = np.arange(100, 132), np.arange(32), [50, 70, 60]
    scores, indices = ExactIndex(corpus, metric="dot").search([[1, 0], [0, 1]], k=2)
    assert indices.tolist() == [[31, 30], [201, 202]]
    assert scores.tolist() == [[131, 130], [70, 60]]


def test_the_first_pass_is_given_up_after_many_crowded_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_index, "FEW_QUERIES", 0)
    starts = small_blocks(monkeypatch, crowded=-1)
    corpus = np.arange(500)[:, None]
    assert ExactIndex(corpus, metric="dot").search([[3]], k=4)[1].tolist() == [[499, 498, 497, 496]]
    assert starts == [*range(0, 288, 32), 288, 338, 388, 438, 488]  # then in larger steps, each row once


@pytest.mark.parametrize("kind", CORPORA)
@pytest.mark.parametrize("part", [0.003, 0.5, 0.99])
def test_rows_that_are_not_asked_for_are_no_answers(kind: str, part: float) -> None:
    corpus, queries = CORPORA[kind]().astype(np.float32), sample(3, seed=9)
    among = np.random.default_rng(2).random(len(corpus)) < part
    among[:7] = True
    k = min(7, int(among.sum()))
    scores, indices = ExactIndex(corpus, metric="dot").search(queries, k=k, among_M=among)
    expected, _ = top_k(queries, corpus[among], k=k, metric="dot")
    assert among[indices].all()
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=3e-6 * float(np.abs(corpus).max() + 1))


ROWS_AND_QUERIES = {
    "one dimension": lambda random: (np.append(random.standard_normal(2998), [70, -90])[:, None], random.standard_normal((5, 1)) * 300),
    "one dimension without outliers": lambda random: (random.uniform(-1, 1, (3000, 1)), random.standard_normal((5, 1))),
    "far from zero": lambda random: (random.standard_normal((3000, 1)) + 1e5, random.standard_normal((5, 1))),
    "rows near zero, their middle far away": lambda random: (np.append(random.random(2990) * 1e-7, np.full(10, 300))[:, None], np.eye(1)),
    "two dimensions": lambda random: (random.standard_t(1, (3000, 2)), random.standard_t(1, (5, 2)) * 1e4),
    "many dimensions": lambda random: (random.standard_t(1.5, (70, 3000)) - 0.2, random.standard_normal((5, 3000)) * 100),
    "a query of zeros": lambda random: (random.standard_normal((50, 3)), np.zeros((1, 3))),
}


@pytest.mark.parametrize("kind", ROWS_AND_QUERIES)
def test_bytes_and_what_is_left_over_are_the_vectors(kind: str) -> None:
    corpus, queries = (part.astype(np.float32) for part in ROWS_AND_QUERIES[kind](np.random.default_rng(6)))
    rows = coarse.round_rows(corpus, "dot")
    asked = coarse.round_queries(queries, rows.steps)
    centre, step = rows.steps.centre_D.astype(np.float64), rows.steps.step_D.astype(np.float64)
    whole = rows.bytes_MD.astype(np.float64) - coarse.ZERO
    left = np.linalg.norm(corpus - centre - step * whole, axis=1)
    assert (rows.error_M >= left).all()
    for lengths, largest in (
        (left, rows.error_J),
        (np.linalg.norm(whole, axis=1), rows.whole_J),
        (np.linalg.norm(corpus, axis=1), rows.length_J),
    ):
        assert all((lengths[at * coarse.ROWS : (at + 1) * coarse.ROWS] <= most).all() for at, most in enumerate(largest))
    queries = queries.astype(np.float64)
    scaled = asked.bytes_DN.T * asked.step_N[:, None]
    np.testing.assert_allclose(asked.error_N, np.linalg.norm(queries * step - scaled, axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(asked.length_N, np.linalg.norm(queries, axis=1), rtol=1e-12)
    np.testing.assert_allclose(asked.offset_N, queries @ centre, rtol=1e-12, atol=1e-12)


def outlying(d: int, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose bytes are cut off, and queries in the direction of what is left over: the bound has nothing to spare."""
    random = np.random.default_rng(d)
    rows = random.standard_normal((10, d)).astype(np.float32)
    rows[1:-1] *= np.float32(1e4)
    steps = coarse._choose_steps(rows[[0, -1]])
    over = rows - steps.centre_D
    over -= np.clip(over, -127 * steps.step_D, 127 * steps.step_D)
    return rows, (over[1:-1] / np.linalg.norm(over[1:-1], axis=1, keepdims=True) * length).astype(np.float32)


@pytest.mark.parametrize("length", [0.01, 1, 1000])
@pytest.mark.parametrize("d", [1, 2, 30, 4000])
def test_the_bound_covers_what_float32_loses_where_it_has_nothing_to_spare(monkeypatch: pytest.MonkeyPatch, d: int, length: float) -> None:
    monkeypatch.setattr(coarse, "_SAMPLE", 2)
    corpus, queries = outlying(d, length)
    rows = coarse.round_rows(corpus, "dot")
    asked = coarse.round_queries(queries, rows.steps)
    products = coarse.make_product(asked.bytes_DN)(rows.bytes_MD)
    query = np.arange(len(queries))
    row = query + 1
    exact = np.einsum("pd,pd->p", queries.astype(np.float64), corpus[row].astype(np.float64))
    loss = d * 2.0**-24 * np.linalg.norm(queries, axis=1) * np.linalg.norm(corpus[row], axis=1)  # of a sum of d products, in any order
    assert (asked.at_most(products[row, query], query, row, rows) >= exact + 2 * loss).all()
    assert (products[row, query] > asked.least(np.float32(exact + loss), rows, 0)).all()


def test_the_integer_product_is_exact() -> None:
    left = np.random.default_rng(0).integers(0, 256, (33, 70)).astype(np.uint8)
    right = np.random.default_rng(1).integers(-127, 128, (70, 21)).astype(np.int8)
    expected = (left.astype(np.int64) - coarse.ZERO) @ right.astype(np.int64)
    assert np.array_equal(coarse.make_product(right)(left), expected)


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
    monkeypatch.setattr(exact_index, "is_available", lambda: False)
    assert np.array_equal(ExactIndex(corpus).search(queries, k=4)[1], expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(value: float) -> None:
    corpus = sample(2500)
    corpus[2037, 2] = value
    with pytest.raises(InputError, match="corpus row 2037"):
        ExactIndex(corpus)
    corpus[2040] = value
    with pytest.raises(InputError, match="corpus row 2037"):
        ExactIndex(corpus)
    with pytest.raises(InputError, match="corpus row 0"):
        ExactIndex(np.full((2500, 3), value, dtype=np.float32))


def test_odd_requests_are_answered_or_refused_like_top_k() -> None:
    index = ExactIndex(sample(30))
    assert len(index) == 30
    assert index.search(sample(2), k=100)[1].shape == (2, 30)
    assert ExactIndex(sample(1)).search(sample(2), k=3)[1].tolist() == [[0], [0]]
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
    assert len(ExactIndex(np.zeros((LARGEST_INDEX, 0), dtype=np.float32))) == LARGEST_INDEX
    with pytest.raises(UsageError, match="at most 4,294,967,295 rows"):
        ExactIndex(np.zeros((LARGEST_INDEX + 1, 0), dtype=np.float32))
    assert ExactIndex(np.zeros((9, 0), dtype=np.float32)).search(np.zeros((1, 0)), k=2)[1].tolist() == [[0, 1]]


def test_a_floor_that_nothing_has_set_lets_every_row_through_and_an_endless_one_none() -> None:
    rows = coarse.round_rows(sample(50), "dot")
    asked = coarse.round_queries(sample(2, seed=1), rows.steps)
    products = coarse.make_product(asked.bytes_DN)(rows.bytes_MD)
    passed = products > asked.least(np.float32([-np.inf, np.inf]), rows, 0)
    assert passed[:, 0].all()
    assert not passed[:, 1].any()


def test_an_unset_floor_lets_the_least_product_of_very_many_dimensions_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "_SAMPLE", 2)
    rows = coarse.round_rows(np.repeat(np.float32([[1], [-1000], [-1]]), 100_000, axis=1), "dot")
    asked = coarse.round_queries(np.ones((1, 100_000), dtype=np.float32), rows.steps)
    products = coarse.make_product(asked.bytes_DN)(rows.bytes_MD)
    assert products[1, 0] == -127 * 127 * 100_000
    assert (products > asked.least(np.float32([-np.inf]), rows, 0)).all()
