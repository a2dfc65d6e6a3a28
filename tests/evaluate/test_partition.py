"""Agreement of partitions against scikit-learn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.evaluate.partition import partition_scores

metrics = pytest.importorskip("sklearn.metrics")
partitions = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-1, 3)), min_size=1, max_size=40)


@settings(deadline=None)
@given(partitions)
def test_all_scores_equal_scikit_learn(rows):
    gold, found = zip(*rows, strict=True)
    ours = partition_scores(gold, found)
    assert ours.v_measure == pytest.approx(metrics.v_measure_score(gold, found), abs=1e-9)
    assert ours.homogeneity == pytest.approx(metrics.homogeneity_score(gold, found), abs=1e-9)
    assert ours.completeness == pytest.approx(metrics.completeness_score(gold, found), abs=1e-9)
    assert ours.ari == pytest.approx(metrics.adjusted_rand_score(gold, found), abs=1e-9)
    assert ours.nmi == pytest.approx(metrics.normalized_mutual_info_score(gold, found), abs=1e-9)


@settings(deadline=None)
@given(partitions, st.permutations([-1, 0, 1, 2, 3]))
def test_names_of_clusters_do_not_matter(rows, renamed):
    gold, found = zip(*rows, strict=True)
    other = partition_scores(gold, [renamed[label + 1] for label in found])
    ours = partition_scores(gold, found)
    assert other.v_measure == pytest.approx(ours.v_measure, abs=1e-12)
    assert other.ari == pytest.approx(ours.ari, abs=1e-12)
    assert other.purity == ours.purity


def test_purity_counts_the_commonest_class_of_each_cluster():
    assert partition_scores("aabbb", [0, 0, 0, 1, 1]).purity == pytest.approx(4 / 5)


def test_no_rows_give_nan():
    assert math.isnan(partition_scores([], []).v_measure)


def test_one_class_and_one_cluster_follow_scikit_learns_rules():
    for gold, found in (("aaa", [0, 0, 0]), ("aaa", [0, 1, 2]), ("abc", [0, 0, 0]), ("a", [5]), ("aabb", [0, 1, 0, 1])):
        ours = partition_scores(gold, found)
        for name in ("v_measure", "homogeneity", "completeness"):
            assert getattr(ours, name) == pytest.approx(getattr(metrics, f"{name}_score")(list(gold), found), abs=1e-12)
        assert ours.ari == pytest.approx(metrics.adjusted_rand_score(list(gold), found), abs=1e-12)
        assert ours.nmi == pytest.approx(metrics.normalized_mutual_info_score(list(gold), found), abs=1e-12)


def test_scores_cannot_be_changed_and_unequal_sides_are_refused():
    with pytest.raises(AttributeError, match="purity"):
        partition_scores("ab", [0, 1]).purity = 0.5
    with pytest.raises(InputError, match="1 classes against 2 clusters"):
        partition_scores("a", [0, 1])


def test_purity_asks_how_pure_the_found_groups_are():
    assert partition_scores("aabb", [0, 1, 2, 3]).purity == 1.0
    assert partition_scores("abcd", [0, 0, 1, 1]).purity == 0.5
