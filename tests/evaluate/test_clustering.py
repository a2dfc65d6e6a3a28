"""k-means over vectors against gold classes."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.data.rows import LabelledText
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.evaluate.clustering import evaluate_clustering, score_partition

TEXTS = [LabelledText(f"{topic} {topic} {topic} word{i}", topic) for topic in ("sea", "hill", "town") for i in range(8)]


def test_clear_classes_are_found_and_noise_is_not(words, noise):
    pytest.importorskip("sklearn")
    good, bad = (evaluate_clustering(encoder, TEXTS, seeds=5) for encoder in (words, noise))
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


metrics = pytest.importorskip("sklearn.metrics")
partitions = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-1, 3)), min_size=1, max_size=40)


@settings(deadline=None)
@given(partitions)
def test_all_scores_equal_scikit_learn(rows):
    gold, found = zip(*rows, strict=True)
    ours = score_partition(gold, found)
    assert ours.v_measure == pytest.approx(metrics.v_measure_score(gold, found), abs=1e-9)
    assert ours.homogeneity == pytest.approx(metrics.homogeneity_score(gold, found), abs=1e-9)
    assert ours.completeness == pytest.approx(metrics.completeness_score(gold, found), abs=1e-9)
    assert ours.ari == pytest.approx(metrics.adjusted_rand_score(gold, found), abs=1e-9)
    assert ours.nmi == pytest.approx(metrics.normalized_mutual_info_score(gold, found), abs=1e-9)


@settings(deadline=None)
@given(partitions, st.permutations([-1, 0, 1, 2, 3]))
def test_names_of_clusters_do_not_matter(rows, renamed):
    gold, found = zip(*rows, strict=True)
    other = score_partition(gold, [renamed[label + 1] for label in found])
    ours = score_partition(gold, found)
    assert other.v_measure == pytest.approx(ours.v_measure, abs=1e-12)
    assert other.ari == pytest.approx(ours.ari, abs=1e-12)
    assert other.purity == ours.purity


def test_purity_counts_the_commonest_class_of_each_cluster():
    assert score_partition("aabbb", [0, 0, 0, 1, 1]).purity == pytest.approx(4 / 5)


def test_no_rows_give_nan():
    assert math.isnan(score_partition([], []).v_measure)


def test_one_class_and_one_cluster_follow_scikit_learns_rules():
    for gold, found in (("aaa", [0, 0, 0]), ("aaa", [0, 1, 2]), ("abc", [0, 0, 0]), ("a", [5]), ("aabb", [0, 1, 0, 1])):
        ours = score_partition(gold, found)
        for name in ("v_measure", "homogeneity", "completeness"):
            assert getattr(ours, name) == pytest.approx(getattr(metrics, f"{name}_score")(list(gold), found), abs=1e-12)
        assert ours.ari == pytest.approx(metrics.adjusted_rand_score(list(gold), found), abs=1e-12)
        assert ours.nmi == pytest.approx(metrics.normalized_mutual_info_score(list(gold), found), abs=1e-12)


def test_scores_cannot_be_changed_and_unequal_sides_are_refused():
    with pytest.raises(AttributeError, match="purity"):
        score_partition("ab", [0, 1]).purity = 0.5
    with pytest.raises(InputError, match="1 classes against 2 clusters"):
        score_partition("a", [0, 1])


def test_purity_asks_how_pure_the_found_groups_are():
    assert score_partition("aabb", [0, 1, 2, 3]).purity == 1.0
    assert score_partition("abcd", [0, 0, 1, 1]).purity == 0.5
