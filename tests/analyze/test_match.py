"""Matching against brute force and scipy's assignment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from munjang.analyze import match as match_file
from munjang.analyze.match import assign, assign_greedily, match
from munjang.errors import UsageError
from munjang.vectors.similarity import similarity

optimize = pytest.importorskip("scipy.optimize")


def sample(n: int, d: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def margins(left: np.ndarray, right: np.ndarray, k: int) -> np.ndarray:
    cosines = similarity(left, right).astype(np.float64)
    forward = np.sort(cosines, axis=1)[:, ::-1][:, :k].mean(axis=1)
    backward = np.sort(cosines, axis=0)[::-1][:k].mean(axis=0)
    return cosines / ((forward[:, None] + backward) / 2)


@settings(max_examples=200, deadline=None)
@given(
    scores=st.tuples(st.integers(0, 12), st.integers(0, 12)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float) | st.floats(-1, 1))
    )
)
def test_no_assignment_has_a_larger_sum(scores: np.ndarray) -> None:
    rows, columns = assign(scores)
    expected_rows, expected_columns = optimize.linear_sum_assignment(scores, maximize=True)
    assert len(rows) == len(set(rows.tolist())) == len(set(columns.tolist())) == min(scores.shape)
    assert rows.tolist() == sorted(rows.tolist())
    assert scores[rows, columns].sum() == pytest.approx(scores[expected_rows, expected_columns].sum())


@pytest.mark.parametrize("shape", [(300, 300), (200, 500), (500, 200)])
def test_larger_assignments_equal_those_of_scipy(shape: tuple[int, int]) -> None:
    scores = similarity(sample(shape[0]), sample(shape[1], seed=1))
    expected = optimize.linear_sum_assignment(scores.astype(np.float64), maximize=True)
    assert np.array_equal(np.stack(assign(scores)), np.stack(expected))


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=st.floats(-1, 1)))
def test_greedy_takes_each_row_and_column_once_and_leaves_no_better_pair(scores: np.ndarray) -> None:
    rows, columns = (places.reshape(-1) for places in np.indices(scores.shape))
    taken = assign_greedily(rows, columns, scores.reshape(-1))
    assert len(taken) == min(scores.shape)
    row_score = {int(rows[place]): scores.reshape(-1)[place] for place in taken}
    column_score = {int(columns[place]): scores.reshape(-1)[place] for place in taken}
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        assert scores[row, column] <= max(row_score.get(row, -2), column_score.get(column, -2))


def test_each_row_finds_its_best_counterpart() -> None:
    left, right = sample(50), sample(70, seed=1)
    found = match(left, right)
    cosines = similarity(left, right)
    assert [pair.right for pair in found.matches] == cosines.argmax(axis=1).tolist()
    assert [pair.score for pair in found.matches] == pytest.approx(cosines.max(axis=1).tolist(), abs=1e-5)
    assert found.left_alone == ()
    assert set(found.right_alone) == set(range(70)) - {pair.right for pair in found.matches}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 25), m=st.integers(1, 25), threshold=st.none() | st.floats(-1, 1))
def test_one_to_one_has_the_largest_sum_above_the_threshold(seed: int, n: int, m: int, threshold: float | None) -> None:
    left, right = sample(n, 4, seed), sample(m, 4, seed + 1)
    found = match(left, right, one_to_one=True, threshold=threshold)
    cosines = similarity(left, right).astype(np.float64)
    gain = cosines if threshold is None else np.maximum(cosines - threshold, 0)
    rows, columns = optimize.linear_sum_assignment(gain, maximize=True)
    gained = sum(pair.score - (threshold or 0) for pair in found.matches) if threshold is not None else sum(p.score for p in found.matches)
    assert found.exact
    assert gained == pytest.approx(gain[rows, columns].sum(), abs=1e-4)
    assert len({pair.left for pair in found.matches}) == len({pair.right for pair in found.matches}) == len(found.matches)
    assert len(found.matches) + len(found.left_alone) == n
    assert len(found.matches) + len(found.right_alone) == m
    assert all(threshold is None or pair.score >= np.float32(threshold) for pair in found.matches)


@pytest.mark.parametrize("one_to_one", [True, False])
def test_margins_are_those_of_bitext_mining(one_to_one: bool) -> None:
    left, right = sample(30), sample(25, seed=1)
    expected = margins(left, right, k=4)
    found = match(left, right, margin=True, one_to_one=one_to_one)
    assert [pair.score for pair in found.matches] == pytest.approx([expected[pair.left, pair.right] for pair in found.matches], rel=1e-4)
    if one_to_one:
        rows, columns = optimize.linear_sum_assignment(expected, maximize=True)
        assert sum(pair.score for pair in found.matches) == pytest.approx(expected[rows, columns].sum(), rel=1e-4)
    else:
        assert [pair.right for pair in found.matches] == expected.argmax(axis=1).tolist()


def test_the_margin_is_not_taken_in_by_a_row_that_is_close_to_everything() -> None:
    right = sample(40, 32)
    hub = right.sum(axis=0, keepdims=True)
    left = right + 1.6 * sample(40, 32, seed=1) + hub * 0.25
    everything = np.concatenate([right, hub])
    by_cosine = sum(pair.left == pair.right for pair in match(left, everything).matches)
    by_margin = sum(pair.left == pair.right for pair in match(left, everything, margin=True).matches)
    assert by_margin > by_cosine


@pytest.mark.parametrize("margin", [False, True], ids=["cosine", "margin"])
def test_shuffled_noisy_copies_are_found_again_however_large(margin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    left, order = sample(400, 32), np.random.default_rng(3).permutation(400)
    right = (left + sample(400, 32, seed=2) * np.float32(0.2))[order]
    truth = np.argsort(order).tolist()
    assert [pair.right for pair in match(left, right, one_to_one=True, margin=margin).matches] == truth
    monkeypatch.setattr(match_file, "ASSIGNED_CELLS", 100)
    greedy = match(left, right, one_to_one=True, margin=margin)
    assert not greedy.exact
    assert [pair.right for pair in greedy.matches] == truth


def test_empty_sides_leave_everything_alone() -> None:
    found = match(np.empty((0, 3), dtype=np.float32), sample(2, 3))
    assert (found.matches, found.left_alone, found.right_alone) == ((), (), (0, 1))
    assert match(sample(2, 3), sample(0, 3), one_to_one=True).left_alone == (0, 1)


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="last dimension"):
        match(sample(2, 3), sample(2, 4))
    with pytest.raises(UsageError, match="neighbours is 0"):
        match(sample(2), sample(2), margin=True, neighbours=0)
    with pytest.raises(UsageError, match="finite"):
        assign([[np.nan]])
