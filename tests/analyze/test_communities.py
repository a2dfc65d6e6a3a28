"""Communities equal a reference that compares everything with everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from munjang.analyze.clusters import find_communities, label_rows
from munjang.errors import InputError, UsageError
from munjang.vectors import range_search


def brute_force(vectors: np.ndarray, threshold: float, min_size: int) -> list[tuple[int, ...]]:
    """The rule in its plainest form, over the whole matrix of cosines."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    scores = unit @ unit.T
    proposals = []
    for row in range(len(vectors)):
        near = [int(other) for other in np.flatnonzero(scores[row] >= np.float32(threshold))]
        if len(near) >= min_size and lengths[row] > 0:
            others = sorted((other for other in near if other != row), key=lambda other: (-scores[row, other], other))
            proposals.append((row, others))
    proposals.sort(key=lambda proposal: -len(proposal[1]))
    used: set[int] = set()
    found = []
    for row, others in proposals:
        left = [other for other in others if other not in used]
        if row not in used and len(left) + 1 >= min_size:
            found.append((row, *left))
            used |= {row, *left}
    return sorted(found, key=len, reverse=True)


def clustered(rows: int, seed: int, *, dimension: int = 24, spread: float = 0.7) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(rows // 15, 1), dimension))
    return (centres[random.integers(0, len(centres), rows)] + spread * random.standard_normal((rows, dimension))).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 150), seed=st.integers(0, 10_000), threshold=st.floats(0.3, 0.95), size=st.integers(1, 8))
def test_they_equal_the_brute_force_reference(rows, seed, threshold, size):
    vectors = clustered(rows, seed)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float64)
    scores = unit @ unit.T
    assume(np.abs(scores - threshold).min() > 1e-6)  # rounding decides there
    expected = brute_force(vectors, threshold, size)
    for found in (
        find_communities(vectors, threshold=threshold, min_size=size),
        find_communities(vectors, threshold=threshold, min_size=size, max_pairs=3),
    ):
        assert [(group[0], set(group)) for group in found] == [(group[0], set(group)) for group in expected]
        for centre, *others in found:
            assert (np.diff(scores[centre, others]) < 1e-6).all()


def test_they_equal_sentence_transformers(monkeypatch):
    util = pytest.importorskip("sentence_transformers", reason="the authority sentence-transformers is not installed").util
    monkeypatch.setattr(range_search, "SMALLEST", 1_000)
    vectors = clustered(3_000, 5)
    theirs = [tuple(group) for group in util.community_detection(vectors, threshold=0.72, min_community_size=5)]
    ours = find_communities(vectors, threshold=0.72, min_size=5)
    assert len(ours) > 50
    assert [set(group) for group in ours] == [set(group) for group in theirs]
    assert [group[0] for group in ours] == [group[0] for group in theirs]


def test_rows_that_are_the_same_are_one_community():
    vectors = np.ones((5_000, 8), dtype=np.float32)
    assert find_communities(vectors, threshold=0.9) == [tuple(range(5_000))]


def test_a_row_of_zeros_is_in_no_community():
    vectors = np.array([[0, 0], [1, 0], [1, 0.01]], dtype=np.float32)
    assert find_communities(vectors, threshold=0.5, min_size=1) == [(1, 2)]


def test_few_rows_and_no_rows_give_no_community():
    assert find_communities(np.ones((3, 2)), min_size=10) == []
    assert find_communities(np.zeros((0, 2))) == []


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="min_size"):
        find_communities([[1.0, 0.0]], min_size=0)
    with pytest.raises(UsageError, match="threshold"):
        find_communities([[1.0, 0.0]], threshold=float("nan"), min_size=1)
    with pytest.raises(InputError, match="row 0"):
        find_communities([[float("nan"), 0.0]], min_size=1)


def test_labels_number_the_communities():
    assert label_rows([(3, 1), (0,)], 5).tolist() == [1, 0, -1, 0, -1]
