"""Quality of labels against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.evaluate.text_labels import compare_label_sets, compare_labels, evaluate_label_sets, evaluate_labels, make_calibration_bins

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
NAMES = ["경제", "날씨", "정치", "연예"]


def sample(rows: int = 200, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    gold = random.integers(0, 3, rows)
    scores = random.standard_normal((rows, 4)) + 2 * np.eye(4)[gold] - [0, 0, 0, 9]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), [NAMES[each] for each in gold]


def test_accuracy_f1_and_confusion_are_scikit_learns() -> None:
    table, gold = sample()
    report = evaluate_labels(table, NAMES, gold, resamples=50)
    best = [NAMES[place] for place in table.argmax(axis=1)]
    assert report.accuracy == pytest.approx(metrics.accuracy_score(gold, best))
    assert report.macro_f1 == pytest.approx(metrics.f1_score(gold, best, average="macro"))
    assert report.confusion == tuple(map(tuple, metrics.confusion_matrix(gold, best, labels=NAMES).tolist()))
    precision, recall, f1, texts = metrics.precision_recall_fscore_support(gold, best, labels=NAMES[:3])
    for place in range(3):
        found = report.labels[place]
        assert (found.precision, found.recall, found.f1, found.texts) == pytest.approx(
            (precision[place], recall[place], f1[place], texts[place])
        )
    assert report.accuracy_ci95.low < report.accuracy < report.accuracy_ci95.high
    assert report.macro_f1_ci95.low < report.macro_f1 < report.macro_f1_ci95.high


def test_a_gold_label_that_the_classifier_does_not_know_is_an_error_of_its() -> None:
    table, gold = sample()
    report = evaluate_labels(table, NAMES, ["새 분류", *gold[1:]], resamples=5)
    assert report.labels[-1].label == "새 분류"
    assert report.labels[-1].recall == 0
    assert report.to_json()["labels"][-1]["precision"] is None


def test_honest_probabilities_have_a_small_calibration_error_and_proud_ones_a_large_one() -> None:
    random = np.random.default_rng(0)
    confidence = random.random(20_000)
    table = np.stack([confidence, 1 - confidence], axis=1)
    honest = ["a" if chance else "b" for chance in random.random(20_000) < confidence]
    assert evaluate_labels(table, ["a", "b"], honest, resamples=2).ece < 0.02
    assert evaluate_labels(table, ["a", "b"], ["a" if chance else "b" for chance in random.random(20_000) < 0.5], resamples=2).ece > 0.2
    assert sum(each.texts for each in make_calibration_bins(confidence, confidence > 0.5)) == 20_000


def test_two_classifiers_are_compared_on_the_same_texts() -> None:
    table, gold = sample()
    worse = table.copy()
    worse[::3] = np.roll(worse[::3], 1, axis=1)
    found = compare_labels(table, NAMES, worse, NAMES, gold, resamples=200)
    assert found["accuracy"].difference > 0.1
    assert found["macro_f1"].p < 0.05
    same = compare_labels(table, NAMES, table[:, ::-1], NAMES[::-1], gold, resamples=50)
    assert same["macro_f1"].difference == 0


def test_sets_of_labels_are_measured_as_by_scikit_learn() -> None:
    random = np.random.default_rng(0)
    gold = random.random((150, 4)) < [0.5, 0.3, 0.1, 0.0]
    table = np.clip(0.6 * gold + 0.7 * random.random((150, 4)) - 0.1, 0, 1)
    best = table >= 0.5
    names = [[NAMES[place] for place in np.flatnonzero(row)] for row in gold]
    report = evaluate_label_sets(table, NAMES, names, threshold=0.5, resamples=50)
    assert report.accuracy == pytest.approx(metrics.accuracy_score(gold, best))
    assert report.micro_f1 == pytest.approx(metrics.f1_score(gold, best, average="micro"))
    assert report.macro_f1 == pytest.approx(metrics.f1_score(gold, best, average="macro"))
    assert [each.texts for each in report.labels] == gold.sum(axis=0).tolist()
    assert report.confusion == ()
    assert sum(each.texts for each in report.calibration) == best.sum()
    assert report.micro_f1_ci95.low < report.micro_f1 < report.micro_f1_ci95.high
    worse = np.where(random.random((150, 4)) < 0.3, 1 - table, table)
    found = compare_label_sets(table, NAMES, worse[:, ::-1], NAMES[::-1], names, threshold=0.5, resamples=100)
    assert found["micro_f1"].difference == pytest.approx(report.micro_f1 - metrics.f1_score(gold, worse >= 0.5, average="micro"))
    assert found["macro_f1"].p < 0.05


def test_texts_without_labels_that_get_none_are_right() -> None:
    report = evaluate_label_sets([[0.1, 0.2], [0.3, 0.4]], ["a", "b"], [[], []], threshold=0.5, resamples=5)
    assert report.accuracy == 1
    assert report.to_json()["ece"] is None
    assert evaluate_label_sets([[0.9]], ["a"], [["new"]], threshold=0.5, resamples=5).labels[-1].recall == 0


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="one column for each label"):
        evaluate_labels([[1.0]], ["a", "b"], ["a"])
    with pytest.raises(InputError, match="at least one"):
        evaluate_labels(np.zeros((0, 2)), ["a", "b"], [])
