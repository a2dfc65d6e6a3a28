"""The k best so far: packed keys and contests against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from munjang.errors import InputError
from munjang.vectors.topk import LARGEST_INDEX, TopKBuffer, make_keys, read_indices, read_scores

finite = st.floats(width=32, allow_nan=False)
few = st.integers(-3, 3).map(float)


def brute_force(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), order


@settings(deadline=None)
@given(arrays(np.float32, 12, elements=finite), st.permutations([0, 1, 7, 2**31, LARGEST_INDEX]))
def test_keys_sort_by_score_then_by_lower_index_and_give_both_back(scores: np.ndarray, indices: list[int]) -> None:
    numbers = np.array([indices[place % 5] for place in range(12)], dtype=np.int64)
    keys = make_keys(scores, numbers)
    assert np.array_equal(read_scores(keys), scores)
    assert np.array_equal(read_indices(keys), numbers)
    assert np.array_equal(np.sort(keys)[::-1], keys[np.lexsort((numbers, -scores))])


def test_zero_and_minus_zero_are_one_score() -> None:
    indices = np.array([3, 3])
    assert np.unique(make_keys(np.float32([0.0, -0.0]), indices)).size == 1
    assert make_keys(np.float32([-np.inf]), np.array([LARGEST_INDEX]))[0] > 0  # 0 is an empty place


@settings(deadline=None)
@given(
    scores=st.integers(1, 400).flatmap(lambda m: arrays(np.float32, (3, m), elements=few)),
    k=st.integers(1, 9),
    block=st.integers(1, 150),
)
def test_blocks_in_any_cut_leave_the_best(scores: np.ndarray, k: int, block: int) -> None:
    k = min(k, scores.shape[1])
    best = TopKBuffer(3, k)
    for start in range(0, scores.shape[1], block):
        best.offer_block(scores[:, start : start + block], start)
    expected = brute_force(scores, k)
    assert np.array_equal(best.floor_N, expected[0][:, -1])
    keys = best.answer()
    assert np.array_equal(read_scores(keys), expected[0])
    assert np.array_equal(read_indices(keys), expected[1])


@settings(deadline=None)
@given(scores=arrays(np.float32, (4, 30), elements=few), k=st.integers(1, 9), data=st.data())
def test_pairs_in_any_order_leave_the_best(scores: np.ndarray, k: int, data: st.DataObject) -> None:
    pairs = np.array(data.draw(st.permutations(range(120))))
    best = TopKBuffer(4, k)
    for part in np.array_split(pairs, data.draw(st.integers(1, 20))):
        query, row = np.divmod(part, 30)
        best.offer_pairs(query, row, scores[query, row])
    expected = brute_force(scores, k)
    keys = best.answer()
    assert np.array_equal(read_scores(keys), expected[0])
    assert np.array_equal(read_indices(keys), expected[1])


def test_until_k_were_offered_nothing_is_refused_and_there_is_no_answer() -> None:
    best = TopKBuffer(1, 3)
    best.offer_block(np.float32([[5, 4]]), 0)
    assert best.floor_N.tolist() == [-np.inf]
    with pytest.raises(InputError, match="overflow"):
        best.answer()
    best.offer_block(np.float32([[-9]]), 2)
    assert best.floor_N.tolist() == [-9]
    assert read_scores(best.answer()).tolist() == [[5, 4, -9]]


def test_one_query_with_very_many_good_rows_does_not_disturb_the_others() -> None:
    scores = np.zeros((40, 5000), dtype=np.float32)
    scores[7] = np.arange(5000)
    scores[20, 3] = 1
    best = TopKBuffer(40, 2)
    best.offer_block(np.full((40, 2), 0.5, dtype=np.float32), 0)
    best.offer_block(scores, 2)
    indices = read_indices(best.answer())
    assert indices[7].tolist() == [5001, 5000]
    assert indices[20].tolist() == [5, 0]
    assert indices[0].tolist() == [0, 1]
