"""Logistic regression against scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from munjang.analyze.classify.logistic import LogisticProblem, OneBlasThread, fit_logistic

linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")


def sample(rows: int = 300, width: int = 12, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    label = random.integers(0, classes, rows)
    return random.standard_normal((classes, width))[label] + 2 * random.standard_normal((rows, width)), label


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
def test_one_label_each_is_scikit_learns_multinomial_regression(strength: float) -> None:
    rows, label = sample()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows))
    problem = LogisticProblem(rows, label[:, None] == np.arange(4), weight, multi=False)
    found = fit_logistic(problem, strength=strength, tolerance=1e-8, steps=5_000)
    expected = linear_model.LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(rows, label, sample_weight=weight)
    assert found.weights_CD == pytest.approx(expected.coef_, abs=1e-4)
    assert found.bias_C - found.bias_C.mean() == pytest.approx(expected.intercept_ - expected.intercept_.mean(), abs=1e-4)


def test_several_labels_each_are_one_regression_for_every_label() -> None:
    rows, label = sample()
    target = np.stack([label == 0, label >= 2, rows[:, 0] > 0], axis=1)
    found = fit_logistic(LogisticProblem(rows, target, np.ones(len(rows)), multi=True), strength=2.0, tolerance=1e-8, steps=5_000)
    for place in range(3):
        expected = linear_model.LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(rows, target[:, place])
        assert found.weights_CD[place] == pytest.approx(expected.coef_[0], abs=1e-4)


def test_a_start_changes_the_way_and_not_the_place() -> None:
    rows, label = sample()
    problem = LogisticProblem(rows.astype(np.float32), label[:, None] == np.arange(4), np.ones(len(rows)), multi=False)
    cold = fit_logistic(problem, strength=1.0)
    warm = fit_logistic(problem, strength=1.0, start=fit_logistic(problem, strength=0.1))
    assert warm.weights_CD == pytest.approx(cold.weights_CD, abs=5e-3)


def test_rows_that_can_be_parted_do_not_overflow() -> None:
    rows = np.array([[1000.0], [-1000.0]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head = fit_logistic(LogisticProblem(rows, np.eye(2, dtype=bool), np.ones(2), multi=False), strength=1e6)
    assert np.isfinite(head.weights_CD).all()
    assert head.scores(rows).argmax(axis=1).tolist() == [0, 1]


def count_blas_threads() -> int:
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_blas_has_its_threads_back_when_the_last_caller_leaves_whoever_came_first() -> None:
    one = OneBlasThread()
    first, second = one, one
    with threadpool_limits(limits=2, user_api="blas"):
        first.__enter__()
        second.__enter__()
        assert count_blas_threads() == 1
        first.__exit__()
        assert count_blas_threads() == 1
        second.__exit__()
        assert count_blas_threads() == 2


def test_only_small_products_are_kept_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watch(loss: object, start: np.ndarray, **_: object) -> np.ndarray:
        seen.append(count_blas_threads())
        return start

    monkeypatch.setattr("munjang.analyze.classify.logistic.minimize", watch)
    for rows in (100, 60_000):
        problem = LogisticProblem(np.zeros((rows, 100), np.float32), np.zeros((rows, 4), np.bool_), np.ones(rows), multi=False)
        with threadpool_limits(limits=2, user_api="blas"):
            fit_logistic(problem, strength=1.0)
            assert count_blas_threads() == 2
    assert seen == [1, 2]
