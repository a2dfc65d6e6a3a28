"""k-means over vectors against gold classes."""

from __future__ import annotations

import sys

import pytest

from munjang.errors import InputError, MissingExtra, UsageError
from munjang.evaluate.clustering import evaluate_clustering
from munjang.evaluate.datasets.rows import LabelledText

TEXTS = [LabelledText(f"{topic} {topic} {topic} word{i}", topic) for topic in ("sea", "hill", "town") for i in range(8)]


def test_clear_classes_are_found_and_noise_is_not(words, noise):
    pytest.importorskip("sklearn")
    good, bad = (evaluate_clustering(encoder, TEXTS, seeds=range(5)) for encoder in (words, noise))
    assert good.scores["v_measure"] > 0.8 > 0.5 > bad.scores["v_measure"]
    assert (good.n, good.classes, good.k) == (24, 3, 3)
    assert good.to_json()["seeds"] == [0, 1, 2, 3, 4]


def test_the_same_seeds_give_the_same_scores(words):
    pytest.importorskip("sklearn")
    assert evaluate_clustering(words, TEXTS) == evaluate_clustering(words, TEXTS)


def test_fewer_distinct_texts_than_k_do_not_warn(words):
    pytest.importorskip("sklearn")
    assert evaluate_clustering(words, [LabelledText("same", str(i)) for i in range(4)]).scores["purity"] == 0.25


def test_without_scikit_learn_the_extra_is_named(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtra, match=r"munjang\[topics\]"):
        evaluate_clustering(words, TEXTS)


def test_impossible_requests_are_refused(words):
    with pytest.raises(InputError, match="no texts"):
        evaluate_clustering(words, [])
    with pytest.raises(UsageError, match="k is 99"):
        evaluate_clustering(words, TEXTS, k=99)
