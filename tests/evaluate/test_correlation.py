"""Correlations against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.evaluate.correlation import pearson, ranks, spearman

stats = pytest.importorskip("scipy.stats")

paired = st.integers(3, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-5, 5), min_size=n, max_size=n),
        st.lists(st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3)), min_size=n, max_size=n),
    )
)


@settings(deadline=None)
@given(paired)
def test_both_equal_scipy_with_and_without_ties(rows):
    x, y = rows
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(pearson(x, y))
        assert math.isnan(spearman(x, y))
        return
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert np.allclose(ranks(x), stats.rankdata(x))


@settings(deadline=None)
@given(paired)
def test_spearman_does_not_change_under_a_rising_function(rows):
    x, y = rows
    before, after = spearman(x, y), spearman([v**3 for v in x], y)
    assert (math.isnan(before) and math.isnan(after)) or before == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize("x", [[], [1.0], [2.0, 2.0, 2.0]])
def test_without_spread_the_answer_is_nan_and_no_warning(x):
    assert math.isnan(pearson(x, list(range(len(x)))))
    assert math.isnan(spearman(x, list(range(len(x)))))


def test_tiny_and_huge_values_do_not_vanish_or_overflow():
    x = np.arange(10.0)
    assert pearson(x * 1e-200, x * 1e200) == pytest.approx(1.0)


def test_nan_and_unequal_lengths_are_refused_with_their_place():
    with pytest.raises(InputError, match="nan at row 1"):
        pearson([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(InputError, match="2 x against 3 y"):
        spearman([1, 2], [1, 2, 3])


def test_rounding_never_takes_a_correlation_beyond_one():
    random = np.random.default_rng(0)
    for size in range(3, 103):
        x = random.normal(size=size)
        assert 1 - 1e-12 < pearson(x, 3 * x) <= 1
        assert -1 <= pearson(x, -3 * x) < -1 + 1e-12


def test_two_rows_are_enough():
    assert pearson([1, 2], [5, 3]) == pytest.approx(-1)
    assert spearman([1, 2], [3, 5]) == pytest.approx(1)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1.9999999999999998, 1e300])
def test_values_that_differ_by_the_least_there_is_have_a_correlation(scale):
    x = np.array([scale, scale, np.nextafter(scale, 0)])
    assert 0.5 < pearson(x, [2, 2, 1]) <= 1
    assert spearman(x, [2, 2, 1]) == pytest.approx(1, abs=1e-9)


def test_a_table_of_numbers_is_refused_with_its_shape():
    with pytest.raises(InputError, match=r"x: an array of shape \(2, 2\), expected one number per row"):
        pearson([[1, 2], [3, 4]], [1, 2])
