"""similarity against sentence-transformers and scipy, and the laws of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from munjang.errors import InputError, UsageError
from munjang.vectors.similarity import normalize, prepare_rows, similarity, similarity_pairwise

METRICS = ("cosine", "dot", "euclidean", "manhattan")
matrices = st.tuples(st.integers(1, 12), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(-100, 100, width=32))
)


def sample(n: int, d: int = 48, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


@pytest.mark.parametrize("metric", METRICS)
def test_it_equals_sentence_transformers(metric: str) -> None:
    util = pytest.importorskip("sentence_transformers.util")
    a, b = sample(30), sample(41, seed=1)
    name = {"cosine": "cos_sim", "dot": "dot_score", "euclidean": "euclidean_sim", "manhattan": "manhattan_sim"}[metric]
    np.testing.assert_allclose(similarity(a, b, metric=metric), getattr(util, name)(a, b).numpy(), rtol=1e-4, atol=1e-5)
    paired = {"cosine": "pairwise_cos_sim", "dot": "pairwise_dot_score"}.get(metric, f"pairwise_{metric}_sim")
    np.testing.assert_allclose(
        similarity_pairwise(a, b[:30], metric=metric), getattr(util, paired)(a, b[:30]).numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("metric", "scipy_metric"), [("euclidean", "euclidean"), ("manhattan", "cityblock")])
def test_distances_equal_scipy_even_for_vectors_that_nearly_coincide(metric: str, scipy_metric: str) -> None:
    a = normalize(sample(20, 384))
    b = np.concatenate([a + 1e-5 * sample(20, 384, seed=2), a, sample(20, 384, seed=3)])
    np.testing.assert_allclose(similarity(a, b, metric=metric), -cdist(a, b, scipy_metric), rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_the_block_does_not_change_the_answer(metric: str) -> None:
    a, b = sample(23), sample(57, seed=1)
    np.testing.assert_allclose(similarity(a, b, metric=metric, block=7), similarity(a, b, metric=metric), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_pairwise_is_the_diagonal_of_all_pairs(metric: str) -> None:
    a, b = sample(19), sample(19, seed=5)
    np.testing.assert_allclose(similarity_pairwise(a, b, metric=metric), similarity(a, b, metric=metric).diagonal(), rtol=1e-4, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_cosine_is_never_nan_and_stays_within_one(rows: np.ndarray) -> None:
    scores = similarity(rows, rows)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1 + 1e-5


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_normalizing_twice_changes_nothing(rows: np.ndarray) -> None:
    once = normalize(rows)
    assert np.array_equal(normalize(once), once)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-8, 1.0, 1e18, 1e30])
def test_cosine_does_not_depend_on_length_however_small_or_large(scale: float) -> None:
    a = sample(5)
    scaled = (a.astype(np.float64) * scale).astype(np.float32)
    np.testing.assert_allclose(similarity(scaled, a), similarity(a, a), atol=1e-3 if scale < 1e-37 else 1e-6)


def test_zero_vectors_have_cosine_zero() -> None:
    zero = np.zeros((2, 48), dtype=np.float32)
    assert not similarity(zero, sample(3)).any()
    assert not similarity_pairwise(zero, zero).any()


@pytest.mark.parametrize("metric", METRICS)
def test_one_dimension_is_one_row_and_no_rows_are_fine(metric: str) -> None:
    a = sample(4)
    assert similarity(a[0], a, metric=metric).shape == (1, 4)
    assert similarity_pairwise(a[0], a[1], metric=metric).shape == (1,)
    assert similarity(a[:0], a, metric=metric).shape == (0, 4)
    assert normalize(a[0]).shape == (48,)


def test_normalize_returns_an_array_of_its_own() -> None:
    unit = normalize(sample(3))
    again = normalize(unit)
    again[:] = 0
    assert unit.any()


def test_a_mismatch_names_both_shapes() -> None:
    with pytest.raises(UsageError, match=r"\(3, 48\).*\(2, 7\)"):
        similarity(sample(3), sample(2, 7))
    with pytest.raises(UsageError, match=r"\(3, 48\).*\(2, 48\)"):
        similarity_pairwise(sample(3), sample(2))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="cosine, dot"):
        similarity(sample(1), sample(1), metric="cos")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="shape"):
        similarity(np.zeros((1, 2, 3)), sample(1))
    with pytest.raises(UsageError, match="block"):
        similarity(sample(1), sample(1), block=0)
    broken = sample(3)
    broken[1, 4] = np.nan
    with pytest.raises(InputError, match="b row 1"):
        similarity(sample(3), broken)


@pytest.mark.parametrize("length", [0.5, 1, 2])
def test_rows_of_one_length_become_unit_rows_and_unit_rows_are_not_copied(length: float) -> None:
    rows = np.eye(3, dtype=np.float32) * np.float32(length)
    assert np.array_equal(normalize(rows), np.eye(3))
    assert (prepare_rows(rows, "cosine") is rows) == (length == 1)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_small_distances_are_those_of_scipy(metric: str) -> None:
    a = normalize(sample(20))
    b = a + np.float32(0.05) * sample(20, seed=1)
    expected = -cdist(a, b, "cityblock" if metric == "manhattan" else "euclidean")
    np.testing.assert_allclose(similarity(a, b, metric=metric), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_the_first_row_with_a_number_that_is_none_is_named(number: float) -> None:
    rows = sample(5)
    rows[2, 7] = rows[4, 3] = number
    with pytest.raises(InputError, match="row 2: holds NaN or infinity"):
        similarity(rows, sample(3))


@pytest.mark.parametrize("rows", [np.zeros((2, 3, 4), dtype=np.float32), np.array([["a", "b"]]), np.float32(1), np.array([[True]])])
def test_what_is_not_rows_of_numbers_is_refused(rows: np.ndarray) -> None:
    with pytest.raises(UsageError, match="expected numbers of shape"):
        similarity(rows, sample(3))
