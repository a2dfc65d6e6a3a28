"""NLI accuracy from labels and from a classifier's scores."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.data.rows import LabelledPair
from munjang.errors import InputError
from munjang.evaluate.nli import choose_labels, evaluate_nli, score_nli

ORDER = ("contradiction", "entailment", "neutral")


class Classifier:
    def predict(self, pairs, /):
        return np.asarray([[0.1, 0.8, 0.1] if a == b else [0.7, 0.1, 0.2] for a, b in pairs], dtype=np.float32)


def test_accuracy_and_confusion_come_from_the_highest_score():
    pairs = [LabelledPair("x", "x", "entailment"), LabelledPair("x", "y", "contradiction"), LabelledPair("x", "z", "neutral")]
    found = evaluate_nli(Classifier(), pairs, labels=ORDER, resamples=100)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.confusion["neutral"]["contradiction"] == 1
    assert found.to_json()["n"] == 3


def test_the_order_of_labels_is_the_callers():
    assert choose_labels([[0.0, 1.0, 0.5]], ["entailment", "neutral", "contradiction"]) == ["neutral"]


def test_macro_f1_equals_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    gold, predicted = ["a", "b", "c", "a", "b"], ["a", "a", "c", "b", "b"]
    assert score_nli(predicted, gold, resamples=0).macro_f1 == pytest.approx(metrics.f1_score(gold, predicted, average="macro"))


def test_a_label_the_model_does_not_have_is_refused_with_its_place():
    with pytest.raises(InputError, match="dev.tsv line 9: the label 'maybe'"):
        evaluate_nli(Classifier(), [LabelledPair("x", "y", "maybe", "dev.tsv line 9")], labels=ORDER)


def test_scores_of_another_width_are_refused():
    with pytest.raises(InputError, match="3 numbers"):
        choose_labels([[0.1, 0.2]], ORDER)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_no_numbers_have_no_label(value):
    with pytest.raises(InputError, match="NaN or infinity"):
        choose_labels([[0.0, value, 0.5]], ORDER)


def test_no_pairs_are_refused():
    with pytest.raises(InputError, match="no pairs to evaluate"):
        evaluate_nli(Classifier(), [], labels=ORDER)
