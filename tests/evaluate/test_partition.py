"""Agreement of partitions against scikit-learn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
