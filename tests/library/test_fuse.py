"""Fusing rankings, and looking near and away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import InputError, UsageError
from munjang.library.questions import Rocchio, blend
from munjang.library.ranking import Hybrid, fuse_ranks, fuse_scores

RANKING = st.lists(st.integers(0, 30), unique=True, max_size=12)


@given(RANKING)
def test_one_ranking_stays_as_it_is(ranking):
    assert [row for row, _ in fuse_ranks([ranking], [1.0])] == ranking


@given(RANKING, RANKING, st.floats(0.1, 5))
def test_fusing_does_not_depend_on_the_order_or_the_scale_of_the_weights(a, b, factor):
    one, other = fuse_ranks([a, b], [1, 2]), fuse_ranks([b, a], [2 * factor, factor])
    assert {row for row, _ in one} == {row for row, _ in other} == set(a) | set(b)
    assert dict(other) == pytest.approx({row: score * factor for row, score in one})


def test_what_both_find_comes_before_what_one_finds():
    assert fuse_ranks([[1, 2], [3, 2]], [1, 1])[0][0] == 2


SCORED = st.dictionaries(st.integers(0, 30), st.floats(0.1, 20), max_size=12)


@given(SCORED)
def test_one_ranking_by_scores_stays_in_its_order(ranking):
    fused = fuse_scores([ranking], [1.0], bounds=[(0.0, 20.0)])
    assert fused == sorted(fused, key=lambda each: (-each[1], each[0]))
    assert [ranking[row] for row, _ in fused] == sorted(ranking.values(), reverse=True)


@given(SCORED, SCORED, st.floats(0.1, 5))
def test_fusing_scores_does_not_depend_on_the_order_or_the_scale_of_the_weights(a, b, factor):
    one = fuse_scores([a, b], [1, 2], bounds=[(0, 20), (0, 20)])
    other = fuse_scores([b, a], [2 * factor, factor], bounds=[(0, 20), (0, 20)])
    assert dict(one) == pytest.approx(dict(other))
    assert all(0 <= score <= 1 + 1e-9 for _, score in one)


def test_a_ranking_that_tells_nothing_apart_leaves_the_order_to_the_other():
    alike = {1: 0.901, 2: 0.9, 3: 0.9}
    assert [row for row, _ in fuse_scores([alike, {3: 9.0, 2: 5.0}], [1, 1], bounds=[(-1, 1), (0, 20)])] == [3, 2, 1]


def test_one_weak_match_counts_by_what_could_have_matched_not_by_what_else_did():
    """Row 2 has one light word of many that were asked for; scaled by the best match alone it would count as a perfect one."""
    assert [row for row, _ in fuse_scores([{1: 0.86, 2: 0.57}, {2: 1.3}], [1, 1], bounds=[(-1, 1), (0, 16)])] == [1, 2]


@given(SCORED, SCORED, st.floats(0.1, 5))
def test_a_fused_score_does_not_depend_on_the_other_rows(a, b, weight):
    together = dict(fuse_scores([a | b, a], [1, weight], bounds=[(0, 20), (0, 20)]))
    alone = dict(fuse_scores([a, a], [1, weight], bounds=[(0, 20), (0, 20)]))
    assert {row: together[row] for row in alone if row not in b} == pytest.approx({row: alone[row] for row in alone if row not in b})


def test_an_unknown_way_of_fusing_is_refused():
    with pytest.raises(UsageError, match="scores or ranks"):
        Hybrid(by="votes")


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2)])
def test_weights_that_mean_nothing_are_refused(weights):
    with pytest.raises(UsageError):
        Hybrid(*weights)


def test_liked_and_unliked_pull_in_opposite_directions():
    like, unlike = np.eye(3, dtype=np.float32)[:1], np.eye(3, dtype=np.float32)[1:2]
    query = np.eye(3, dtype=np.float32)[2]
    vector = blend(query, like, unlike, weights=Rocchio())
    assert vector[0] > 0 > vector[1]
    assert np.linalg.norm(vector) == pytest.approx(1)
    with pytest.raises(InputError, match="cancel"):
        blend(None, like, like, weights=Rocchio(like=1, unlike=1))
