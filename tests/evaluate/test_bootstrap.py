"""Intervals: exact resampling, the same for a seed, near scipy's, and fast."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.evaluate.bootstrap import (
    bootstrap_interval,
    bootstrap_means,
    make_spearman,
    paired_bootstrap,
    resample_mean,
    resample_pearson,
    resample_rows,
    resample_spearman,
)
from munjang.evaluate.metrics import pearson, spearman

rows = st.integers(3, 20).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-4, 4), min_size=n, max_size=n),
        st.lists(st.integers(-9, 9), min_size=n, max_size=n),
        st.lists(st.integers(0, n - 1), min_size=n, max_size=n),
    )
)


@settings(deadline=None)
@given(rows)
def test_a_resampled_correlation_is_the_correlation_of_the_resampled_rows(data):
    x, y, drawn = (np.asarray(part, dtype=np.float64) for part in data)
    at = drawn.astype(int)
    counts = np.bincount(at, minlength=x.size).astype(np.float64)[None]
    for resampled, plain in ((resample_spearman(x, y), spearman), (resample_pearson(x, y), pearson)):
        assert resampled(counts)[0] == pytest.approx(plain(x[at], y[at]), abs=1e-9, nan_ok=True)


def _sample(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    gold = random.random(n).round(1)
    return gold + random.normal(scale=0.3, size=n), gold


def test_the_interval_is_near_scipys():
    stats = pytest.importorskip("scipy.stats")
    x, gold = _sample()
    theirs = stats.bootstrap(
        (x, gold), lambda a, b: pearson(a, b), paired=True, vectorized=False, n_resamples=2000, method="percentile", rng=0
    )
    ours = bootstrap_interval(resample_pearson(x, gold), x.size, resamples=4000)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.01)


def test_several_means_in_one_pass_are_the_means_one_by_one():
    x, gold = _sample(50)
    together = bootstrap_means({"x": x, "gold": gold}, resamples=300, seed=2)
    for name, column in (("x", x), ("gold", gold)):
        alone = bootstrap_interval(resample_mean(column), 50, resamples=300, seed=2)
        assert (together[name].low, together[name].high) == pytest.approx((alone.low, alone.high))


def test_the_slow_way_draws_the_same_rows_as_the_fast_way():
    x, gold = _sample(60)
    slow = bootstrap_interval(resample_rows(lambda at: spearman(x[at], gold[at]), x.size), x.size, resamples=200, seed=5)
    fast = bootstrap_interval(resample_spearman(x, gold), x.size, resamples=200, seed=5)
    assert (slow.low, slow.high) == pytest.approx((fast.low, fast.high))


def test_a_seed_gives_one_interval_and_another_seed_another():
    x, gold = _sample()
    first, again, other = (bootstrap_interval(resample_spearman(x, gold), x.size, resamples=500, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_ten_thousand_resamples_of_an_sts_test_set_take_less_than_three_seconds():
    x, gold = _sample(1379)
    start = time.perf_counter()
    found = bootstrap_interval(resample_spearman(x, gold), x.size)
    assert time.perf_counter() - start < 3
    assert found.low < spearman(x, gold) < found.high


def test_the_interval_of_a_mean_covers_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        sample = random.normal(size=60)
        found = bootstrap_interval(resample_mean(sample), 60, resamples=400, seed=trial)
        covered += found.low <= 0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_equal_systems_do_not_differ_and_a_better_one_does():
    x, gold = _sample()
    noisy = x + np.random.default_rng(9).normal(scale=0.6, size=x.size)
    same = paired_bootstrap(x, x, make_spearman(gold), resamples=500)
    better = paired_bootstrap(x, noisy, make_spearman(gold), resamples=2000)
    assert (same.difference, same.p) == (0.0, 1.0)
    assert better.p < 0.01
    assert better.ci95.low > 0
    assert better.difference == pytest.approx(spearman(x, gold) - spearman(noisy, gold))


def test_the_difference_turns_its_sign_when_the_systems_are_swapped():
    x, gold = _sample(80)
    noisy = x + np.random.default_rng(9).normal(scale=0.2, size=x.size)
    there, back = (paired_bootstrap(a, b, make_spearman(gold), resamples=500) for a, b in ((x, noisy), (noisy, x)))
    assert there.difference == pytest.approx(-back.difference)
    assert there.ci95.low == pytest.approx(-back.ci95.high)
    assert there.p == pytest.approx(back.p)


def test_no_rows_give_nan_and_no_resamples_are_refused():
    assert math.isnan(bootstrap_interval(resample_mean([]), 0).low)
    with pytest.raises(UsageError, match="at least 1"):
        bootstrap_interval(resample_mean([1.0]), 1, resamples=0)
    nothing = bootstrap_means({"accuracy": [], "recall": []})["recall"]
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.high)
    none = paired_bootstrap([], [], resample_mean)
    assert (none.n, math.isnan(none.p)) == (0, True)


def test_systems_whose_statistic_has_no_meaning_have_no_p_value():
    found = paired_bootstrap([1.0] * 8, list(range(8)), make_spearman(list(range(8))), resamples=100)
    assert math.isnan(found.a)
    assert math.isnan(found.p)
    assert found.b == pytest.approx(1)
