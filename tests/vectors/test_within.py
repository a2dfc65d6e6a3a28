"""Pairs above a threshold: the ones that a whole matrix of cosines shows, each once."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.errors import UsageError
from munjang.vectors import coarse, within
from munjang.vectors.within import visit_pairs_within


def found(unit: np.ndarray, threshold: float, **options) -> dict[tuple[int, int], float]:
    pairs: dict[tuple[int, int], float] = {}

    def visit(a, b, score):
        for pair in zip(a.tolist(), b.tolist(), score.tolist(), strict=True):
            assert pair[:2] not in pairs
            pairs[pair[:2]] = pair[2]

    visit_pairs_within(unit, threshold, visit, **options)
    return pairs


@pytest.mark.parametrize("smallest", [1, 10**9], ids=["bytes first", "float32 only"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("spread", [0.05, 0.6], ids=["crowded", "loose"])
def test_every_pair_is_visited_once(monkeypatch, smallest, threads, spread):
    monkeypatch.setattr(within, "SMALLEST", smallest)
    random = np.random.default_rng(7)
    centres = random.standard_normal((20, 32))
    rows = centres[random.integers(0, 20, 2_500)] + spread * random.standard_normal((2_500, 32))
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    scores = unit @ unit.T
    threshold = 0.801
    sure = {(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(scores >= threshold + 1e-5, 1)), strict=True)}
    possible = {(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(scores >= threshold - 1e-5, 1)), strict=True)}
    pairs = found(unit, threshold, threads=threads)
    assert sure <= pairs.keys() <= possible
    a, b = np.array(list(pairs)).T
    np.testing.assert_allclose(list(pairs.values()), scores[a, b], atol=1e-6)


def test_rows_that_bytes_describe_badly_are_not_lost(monkeypatch):
    """Few pairs, so that the first pass decides; two rows of the last block have a number that is too large for their bytes."""
    monkeypatch.setattr(within, "SMALLEST", 1)
    random = np.random.default_rng(3)
    rows = random.standard_normal((40 * coarse.ROWS, 24)).astype(np.float32)
    rows[-3, 5] += 9
    rows[-2] = rows[-3] + 0.3 * random.standard_normal(24)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    exact = float(unit[-3] @ unit[-2])
    pairs = found(unit, exact - 1e-4, threads=1)
    assert pairs[len(unit) - 3, len(unit) - 2] == pytest.approx(exact, abs=1e-6)


def test_no_rows_have_no_pairs():
    assert found(np.zeros((0, 4), dtype=np.float32), 0.5) == {}
    assert found(np.ones((1, 4), dtype=np.float32) / 2, 0.5) == {}


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(UsageError, match="expected a number between -1 and 1"):
        found(np.eye(2, dtype=np.float32), threshold)


def test_a_pair_at_the_threshold_belongs_to_it():
    assert found(np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 0]], 1.0) == {(0, 2): 1.0, (0, 4): 1.0, (2, 4): 1.0}
