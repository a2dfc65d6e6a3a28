"""Pairs above a threshold: the ones that a whole matrix of cosines shows, each once."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.errors import UsageError
from munjang.vectors import coarse, range_search
from munjang.vectors.range_search import visit_pairs_within


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
    monkeypatch.setattr(range_search, "SMALLEST", smallest)
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
    monkeypatch.setattr(range_search, "SMALLEST", 1)
    random = np.random.default_rng(3)
    rows = random.standard_normal((40 * coarse.ROWS, 24)).astype(np.float32)
    rows[-3, 5] += 9
    rows[-2] = rows[-3] + 0.3 * random.standard_normal(24)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    exact = float(unit[-3] @ unit[-2])
    pairs = found(unit, exact - 1e-4, threads=1)
    assert pairs[len(unit) - 3, len(unit) - 2] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("crowded", [0, 1 / 32, 1], ids=["float32 blocks", "both ways", "pairs only"])
@pytest.mark.parametrize("threshold", [-0.5, 0.3, 0.9])
def test_whichever_way_a_block_goes_the_pairs_are_those_of_the_whole_matrix(monkeypatch, threshold, crowded):
    for module in (coarse, range_search):
        monkeypatch.setattr(module, "ROWS", 64)
    for name, value in (("SMALLEST", 1), ("_GROUP", 48), ("_PAIRS", 7), ("_CROWDED", crowded)):
        monkeypatch.setattr(range_search, name, value)
    monkeypatch.setattr(coarse, "_SAMPLE", 40)
    random = np.random.default_rng(5)
    rows = random.standard_normal((300, 8)) + 0.7
    rows[random.integers(0, 300, 30), random.integers(0, 8, 30)] += 20  # too large for their bytes
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    scores = np.triu(unit @ unit.T, 1) + np.tril(np.full((300, 300), -2))
    pairs = found(unit, threshold, threads=1)
    assert set(zip(*np.nonzero(scores >= threshold + 1e-5), strict=True)) <= pairs.keys()
    assert pairs.keys() <= set(zip(*np.nonzero(scores >= threshold - 1e-5), strict=True))


def test_without_an_exact_product_there_is_no_first_pass(monkeypatch):
    monkeypatch.setattr(range_search, "SMALLEST", 1)
    monkeypatch.setattr(range_search, "is_available", lambda: False)

    def lowest(right: np.ndarray):
        return lambda left: np.full((len(left), right.shape[1]), -(2**30), dtype=np.int32)

    monkeypatch.setattr(range_search, "make_product", lowest)
    assert found(np.eye(3, dtype=np.float32)[[0, 1, 0]], 0.9) == {(0, 2): 1.0}


def saturating(right):
    """Multiply as processors without VNNI do: neighbouring products are added in 16 bits."""

    def product(left):
        twos = left.astype(np.int64)[:, :, None] * right
        sums = np.clip(twos[:, ::2] + twos[:, 1::2], -(2**15), 2**15 - 1).sum(axis=1)
        return (sums - coarse.ZERO * right.astype(np.int64).sum(axis=0)).astype(np.int32)

    return product


def test_a_product_that_saturates_is_not_available_and_one_that_does_not_is(monkeypatch):
    tried = coarse.is_available.__wrapped__  # the answer is kept, so ask behind it
    monkeypatch.setattr(coarse, "make_product", lambda right: lambda left: (left.astype(int) - coarse.ZERO) @ right.astype(int))
    assert tried() is True
    monkeypatch.setattr(coarse, "make_product", saturating)
    assert tried() is False


def test_rows_without_numbers_have_a_cosine_of_zero(monkeypatch):
    monkeypatch.setattr(range_search, "SMALLEST", 1)
    assert found(np.zeros((3, 0), dtype=np.float32), 0.0) == {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}


def test_no_rows_have_no_pairs():
    assert found(np.zeros((0, 4), dtype=np.float32), 0.5) == {}
    assert found(np.ones((1, 4), dtype=np.float32) / 2, 0.5) == {}


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(UsageError, match="expected a number between -1 and 1"):
        found(np.eye(2, dtype=np.float32), threshold)


def test_a_pair_at_the_threshold_belongs_to_it():
    assert found(np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 0]], 1.0) == {(0, 2): 1.0, (0, 4): 1.0, (2, 4): 1.0}
