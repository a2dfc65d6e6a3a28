"""Correlations against scipy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from munjang.errors import InputError, UsageError
from munjang.evaluate.metrics import (
    accuracy,
    average_precision,
    best_accuracy,
    best_f1,
    f1_at,
    macro_f1,
    matthews,
    pair_similarities,
    pearson,
    rank_values,
    spearman,
)
from munjang.evaluate.sts import METRICS
from munjang.vectors.similarity import similarity_pairwise

stats = pytest.importorskip("scipy.stats")

paired = st.integers(3, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-5, 5), min_size=n, max_size=n),
        st.lists(st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3)), min_size=n, max_size=n),
    )
)


@settings(deadline=None)
@given(paired)
def test_both_equal_scipy_with_and_without_ties(rows):
    x, y = rows
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(pearson(x, y))
        assert math.isnan(spearman(x, y))
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert np.allclose(rank_values(x), stats.rankdata(x))


@settings(deadline=None)
@given(paired)
def test_spearman_does_not_change_under_a_rising_function(rows):
    x, y = rows
    before, after = spearman(x, y), spearman([v**3 for v in x], y)
    assert (math.isnan(before) and math.isnan(after)) or before == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize("x", [[], [1.0], [2.0, 2.0, 2.0]])
def test_without_spread_the_answer_is_nan_and_no_warning(x):
    assert math.isnan(pearson(x, list(range(len(x)))))
    assert math.isnan(spearman(x, list(range(len(x)))))


def test_tiny_and_huge_values_do_not_vanish_or_overflow():
    x = np.arange(10.0)
    assert pearson(x * 1e-200, x * 1e200) == pytest.approx(1.0)


def test_nan_and_unequal_lengths_are_refused_with_their_place():
    with pytest.raises(InputError, match="nan at row 1"):
        pearson([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(InputError, match="2 x against 3 y"):
        spearman([1, 2], [1, 2, 3])


def test_rounding_never_takes_a_correlation_beyond_one():
    random = np.random.default_rng(0)
    for size in range(3, 103):
        x = random.normal(size=size)
        assert 1 - 1e-12 < pearson(x, 3 * x) <= 1
        assert -1 <= pearson(x, -3 * x) < -1 + 1e-12


def test_two_rows_are_enough():
    assert pearson([1, 2], [5, 3]) == pytest.approx(-1)
    assert spearman([1, 2], [3, 5]) == pytest.approx(1)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1.9999999999999998, 1e300])
def test_values_that_differ_by_the_least_there_is_have_a_correlation(scale):
    x = np.array([scale, scale, np.nextafter(scale, 0)])
    assert 0.5 < pearson(x, [2, 2, 1]) <= 1
    assert spearman(x, [2, 2, 1]) == pytest.approx(1, abs=1e-9)


def test_a_table_of_numbers_is_refused_with_its_shape():
    with pytest.raises(InputError, match=r"x: an array of shape \(2, 2\), expected one number per row"):
        pearson([[1, 2], [3, 4]], [1, 2])


vectors = hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.just(5)), elements=st.floats(-100, 100, width=32))


@settings(deadline=None)
@given(vectors)
def test_equal_vectors_have_cosine_exactly_one_and_zero_vectors_zero(rows):
    found = pair_similarities(rows, rows)
    squares = (rows.astype(np.float64) ** 2).sum(axis=1)
    assert (found[squares > 0] == 1.0).all()
    assert (found[squares == 0] == 0.0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_they_equal_the_single_precision_ones_within_its_rounding(metric):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 5000, 24)).astype(np.float32)
    assert np.allclose(pair_similarities(a, b, metric=metric), similarity_pairwise(a, b, metric=metric), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_ranks_equal_sentence_transformers_even_with_many_nearly_equal_pairs(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch, util = pytest.importorskip("torch"), pytest.importorskip("sentence_transformers.util")
    theirs = {
        "cosine": util.pairwise_cos_sim,
        "dot": util.pairwise_dot_score,
        "euclidean": util.pairwise_euclidean_sim,
        "manhattan": util.pairwise_manhattan_sim,
    }[metric]
    random = np.random.default_rng(4)
    a = random.normal(size=(1379, 64))
    b = a + random.normal(size=(1379, 64)) * random.uniform(1e-2, 2, size=(1379, 1))
    a, b = ((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (a, b))
    gold = np.clip((a * b).sum(1) + random.normal(scale=0.2, size=1379), 0, 1).round(1)
    ours = spearman(pair_similarities(a, b, metric=metric), gold)
    assert ours == pytest.approx(spearman(theirs(torch.tensor(a), torch.tensor(b)).numpy(), gold), abs=1e-6)


def test_unequal_shapes_and_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="1 vectors a against 2"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((2, 2), np.float32))
    with pytest.raises(UsageError, match="dimension"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((1, 3), np.float32))
    with pytest.raises(UsageError, match="unknown"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32), metric="hamming")  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS)
def test_rows_beyond_one_block_are_measured_too(metric):
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 4100, 3)).astype(np.float32)
    whole = pair_similarities(a, b, metric=metric)
    assert whole.dtype == np.float64
    assert np.array_equal(whole[4090:], pair_similarities(a[4090:], b[4090:], metric=metric))


metrics = pytest.importorskip("sklearn.metrics")

scored = st.lists(st.tuples(st.integers(-8, 8).map(lambda i: i / 8), st.integers(0, 1)), min_size=1, max_size=40)


@pytest.fixture(scope="module")
def authority():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    return module.BinaryClassificationEvaluator


@settings(deadline=None)
@given(scored)
def test_average_precision_and_matthews_equal_scikit_learn(rows):
    scores, labels = zip(*rows, strict=True)
    called = [int(s > 0) for s in scores]
    theirs = metrics.matthews_corrcoef(labels, called) if len({*labels, *called}) > 1 else 0.0
    assert matthews(called, labels) == pytest.approx(theirs, abs=1e-12)
    if not any(labels):
        assert math.isnan(average_precision(scores, labels))
        return
    assert average_precision(scores, labels) == pytest.approx(metrics.average_precision_score(labels, scores), abs=1e-12)
    assert f1_at(scores, labels, threshold=0.25) == pytest.approx(metrics.f1_score(labels, [s >= 0.25 for s in scores]), abs=1e-12)


def test_best_thresholds_equal_sentence_transformers(authority):
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 50, 300):
        for digits in (1, 6):
            scores, labels = random.normal(size=size).round(digits), random.integers(0, 2, size=size)
            acc, acc_threshold = authority.find_best_acc_and_threshold(scores, labels, True)
            ours = best_accuracy(scores, labels)
            assert (ours.accuracy, ours.threshold) == (pytest.approx(acc), pytest.approx(acc_threshold))
            if labels.any():
                f1, precision, recall, threshold = authority.find_best_f1_and_threshold(scores, labels, True)
                found = best_f1(scores, labels)
                assert (found.f1, found.precision, found.recall) == pytest.approx((f1, precision, recall))
                assert found.threshold == pytest.approx(threshold)


@settings(deadline=None)
@given(scored)
def test_the_best_threshold_reaches_the_promised_numbers_and_no_score_does_better(rows):
    scores, labels = zip(*rows, strict=True)
    best = best_accuracy(scores, labels)
    assert accuracy([int(s >= best.threshold) for s in scores], labels) == pytest.approx(best.accuracy)
    assert all(accuracy([int(s >= cut) for s in scores], labels) <= best.accuracy + 1e-12 for cut in scores)
    if any(labels):
        top = best_f1(scores, labels)
        assert f1_at(scores, labels, threshold=top.threshold) == pytest.approx(top.f1)
        assert all(f1_at(scores, labels, threshold=cut) <= top.f1 + 1e-12 for cut in scores)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_accuracy_and_macro_f1_equal_scikit_learn(rows):
    predicted, gold = zip(*rows, strict=True)
    assert accuracy(predicted, gold) == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert macro_f1(predicted, gold) == pytest.approx(metrics.f1_score(gold, predicted, average="macro", zero_division=0))


def test_no_rows_and_no_positive_label_give_nan_not_a_warning():
    assert math.isnan(accuracy([], []))
    assert math.isnan(best_accuracy([], []).accuracy)
    assert math.isnan(best_f1([0.1, 0.2], [0, 0]).f1)


def test_a_label_other_than_0_and_1_is_refused_with_its_row():
    with pytest.raises(InputError, match="2 at row 1"):
        best_f1([0.1, 0.2], [1, 2])


@pytest.mark.parametrize("upper", [1.0, np.nextafter(1.0, 0), np.nextafter(2.0, 3), -1.0])
def test_a_threshold_parts_even_scores_that_are_neighbours(upper):
    scores = [upper, np.nextafter(upper, -np.inf)]
    for best in (best_f1(scores, [1, 0]), best_accuracy(scores, [1, 0])):
        assert [score >= best.threshold for score in scores] == [True, False]


def test_where_calling_nothing_1_does_as_well_nothing_is_called_1():
    best = best_accuracy([0.9, 0.1], [0, 1])
    assert (best.accuracy, best.threshold > 0.9) == (0.5, True)
    assert best_accuracy([0.9, 0.1], [1, 1]).threshold == 0.1


def test_results_cannot_be_changed():
    for result in (best_accuracy([0.5], [1]), best_f1([0.5], [1])):
        with pytest.raises(AttributeError, match="threshold"):
            result.threshold = 0


def test_sides_of_different_lengths_are_refused():
    for measure in (accuracy, macro_f1, matthews, average_precision, best_accuracy, best_f1):
        with pytest.raises(InputError, match="1 .* against 2 labels"):
            measure([1], [1, 0])
    for measure in (matthews, macro_f1):
        assert math.isnan(measure([], []))
    assert math.isnan(f1_at([0.5], [0], threshold=0.1))


def test_two_rows_are_enough_for_matthews():
    assert matthews([1, 0], [1, 0]) == 1.0
    assert matthews([1, 0], [0, 1]) == -1.0
