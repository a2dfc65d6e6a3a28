"""Classification measures against scikit-learn and sentence-transformers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.evaluate.classification import accuracy, average_precision, best_accuracy, best_f1, f1_at, macro_f1, matthews

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
