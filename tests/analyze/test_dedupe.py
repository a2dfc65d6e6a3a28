"""Removal of near-duplicates against the walk it describes, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.analyze.dedupe import dedupe
from munjang.errors import UsageError
from munjang.vectors.similarity import similarity


def walk(vectors: np.ndarray, threshold: float) -> list[int]:
    scores, kept = similarity(vectors, vectors), []
    for row in range(len(vectors)):
        if not any(scores[row, other] >= np.float32(threshold) for other in kept):
            kept.append(row)
    return kept


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 50), block=st.integers(1, 60), threshold=st.floats(0.05, 0.99))
def test_the_first_of_each_kind_stays(seed: int, n: int, block: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((n, 3)).astype(np.float32)
    scores = similarity(vectors, vectors)
    if n and np.abs(scores - np.float32(threshold)).min() < 1e-5:
        return  # rounding decides
    found = dedupe(vectors, threshold=threshold, block=block)
    assert list(found.kept) == walk(vectors, threshold)
    assert sorted([*found.kept, *(each.row for each in found.dropped)]) == list(range(n))
    for each in found.dropped:
        assert each.kept in found.kept
        assert each.kept < each.row
        assert each.score == pytest.approx(float(scores[each.row, each.kept]), abs=1e-5)
        assert each.score >= np.float32(threshold)


def test_what_stays_has_no_two_alike_and_a_second_walk_drops_nothing() -> None:
    vectors = np.repeat(np.random.default_rng(0).standard_normal((300, 8)), 8, axis=0)
    vectors = vectors + np.random.default_rng(1).standard_normal(vectors.shape) * 0.05
    kept = dedupe(vectors, threshold=0.9).kept
    again = dedupe(vectors[list(kept)], threshold=0.9)
    assert 250 < len(kept) < 400
    assert again.dropped == ()


def test_equal_texts_go_whatever_the_threshold() -> None:
    found = dedupe([[1, 0], [0, 1], [1, 0]], texts=["a", "b", "a"], threshold=2)
    assert found.kept == (0, 1)
    assert [(each.row, each.kept) for each in found.dropped] == [(2, 0)]


def test_a_chain_of_small_steps_drags_no_different_text_away() -> None:
    angles = np.radians([0, 20, 40])
    found = dedupe(np.stack([np.cos(angles), np.sin(angles)], axis=1), threshold=np.cos(np.radians(25)))
    assert found.kept == (0, 2)


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="1 for 2 vectors"):
        dedupe([[1, 0], [0, 1]], texts=["a"])
    with pytest.raises(UsageError, match="block is 0; expected at least 1 row"):
        dedupe([[1, 0], [0, 1]], block=0)
