"""A statistic over rows → how far it would move on other rows: percentile intervals, and the paired test of two systems.

A resample of n rows is held as how often each row was drawn, so that many resamples are one matrix `counts_BN`, and a statistic is a
function counts_BN → values_B. Mean, Pearson and Spearman are exact under resampling, not approximated: Spearman ranks every resample anew,
ties and repeated rows included, by cumulative counts over one sort (10,000 resamples of 1,379 pairs: about half a second). `resample_rows`
makes the same out of any function of row numbers, one resample at a time (slow).

Shapes: B resamples, N rows, G groups of equal values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import UsageError
from munjang.evaluate.inputs import FloatArray, IntArray, check_aligned, check_numbers, check_same_length
from munjang.options import Option
from munjang.tables import Row, Table
from munjang.wording import brief_repr

Resampled: TypeAlias = Callable[[FloatArray], FloatArray]
"""counts_BN → values_B."""

Statistic: TypeAlias = Callable[[FloatArray], Resampled]
"""One system's scores → its statistic under resampling; what `paired_bootstrap` compares."""

Resamples: TypeAlias = Annotated[int, Option("Bootstrap resamples for the intervals; 0 omits them.", min=0)]
RESAMPLES = 10_000
PAIRS_RESAMPLES = 1_000
"""Of average precision, which every resample computes anew."""
_BLOCK_NUMBERS = 2**18


@dataclass(frozen=True)
class Interval:
    """The middle `level` of a bootstrap distribution; nan where the statistic has no value."""

    low: float
    high: float
    level: float = 0.95

    def to_json(self) -> list[float]:
        """Return [low, high]."""
        return [self.low, self.high]


class ScoreTable(Table):
    """A result with numbers by name, some of them with an interval."""

    columns: ClassVar[tuple[str, ...]] = ("measure", "value", "low", "high")

    scores: dict[str, float]
    ci95: dict[str, Interval]

    def to_rows(self) -> list[Row]:
        """Return each measure, its value, and its interval where it has one."""
        found = ((name, value, self.ci95.get(name)) for name, value in self.scores.items())
        return [{"measure": name, "value": value, "low": at and at.low, "high": at and at.high} for name, value, at in found]


@brief_repr
@dataclass(frozen=True)
class NamedScores(ScoreTable):
    """Numbers by name over n rows, and the intervals of some of them."""

    n: int
    scores: dict[str, float]
    ci95: dict[str, Interval]

    def to_json(self) -> dict[str, Any]:
        """Return n, the numbers by name, and ci95."""
        return dict(to_jsonable({"n": self.n, **self.scores, "ci95": self.ci95}))


@brief_repr
@dataclass(frozen=True)
class PairedDifference:
    """How much system a beats system b, the interval of that difference, and its two-sided p-value."""

    a: float
    b: float
    difference: float
    ci95: Interval
    p: float
    n: int


def bootstrap_interval(statistic: Resampled, n: int, *, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95) -> Interval:
    """Return the percentile interval of a statistic over n rows; the same seed gives the same interval.

    >>> bootstrap_interval(resample_mean([0.0, 1.0, 1.0, 1.0]), 4, resamples=1000)
    Interval(low=0.25, high=1.0, level=0.95)
    """
    return bootstrap_intervals({"it": statistic}, n, resamples=resamples, seed=seed, level=level)["it"]


def bootstrap_intervals(
    statistics: Mapping[str, Resampled], n: int, *, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95
) -> dict[str, Interval]:
    """Return the interval of each named statistic, all from the same resampled rows, each as `bootstrap_interval` gives it alone."""
    if n == 0:
        return dict.fromkeys(statistics, Interval(math.nan, math.nan, level))
    values: dict[str, list[FloatArray]] = {name: [] for name in statistics}
    for counts_BN in _draw_counts(n, resamples, seed):
        for name, statistic in statistics.items():
            values[name].append(statistic(counts_BN))
    return {name: _make_interval(np.concatenate(parts), level) for name, parts in values.items()}


def bootstrap_means(columns: Mapping[str, ArrayLike], *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Interval]:
    """Return the interval of the mean of each named column, all from the same resampled rows, in one pass.

    >>> bootstrap_means({"accuracy": [0.0, 1.0, 1.0, 1.0]}, resamples=1000)
    {'accuracy': Interval(low=0.25, high=1.0, level=0.95)}
    """
    if not columns:
        return {}
    table_NK = np.stack([check_numbers(column, name=name) for name, column in columns.items()], axis=1)
    n = len(table_NK)
    if n == 0:
        return dict.fromkeys(columns, Interval(math.nan, math.nan))
    means_BK = np.concatenate([counts_BN @ table_NK / n for counts_BN in _draw_counts(n, resamples, seed)])
    return {name: _make_interval(means_BK[:, place], 0.95) for place, name in enumerate(columns)}


def paired_bootstrap(
    score_a: ArrayLike, score_b: ArrayLike, statistic: Statistic, *, resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """Return statistic(a) − statistic(b) with its interval and p-value, both systems seeing the same resampled rows.

    p is twice the smaller tail of the resampled differences at 0, counted as (tail + 1) / (resamples + 1) and at most 1: it is never 0.
    """
    a, b = check_numbers(score_a, name="scores of a"), check_numbers(score_b, name="scores of b")
    check_same_length(a, b, names=("scores of a", "scores of b"))
    if not a.size:
        return PairedDifference(math.nan, math.nan, math.nan, Interval(math.nan, math.nan), math.nan, 0)
    return compare_resampled(statistic(a), statistic(b), a.size, resamples=resamples, seed=seed)


def compare_resampled(of_a: Resampled, of_b: Resampled, n: int, *, resamples: int = RESAMPLES, seed: int = 0) -> PairedDifference:
    """Return the difference of two statistics over the same n rows, as `paired_bootstrap` does."""
    once_1N = np.ones((1, n))
    whole_a, whole_b = float(of_a(once_1N)[0]), float(of_b(once_1N)[0])
    moved = np.concatenate([of_a(counts_BN) - of_b(counts_BN) for counts_BN in _draw_counts(n, resamples, seed)])
    valid = moved[np.isfinite(moved)]
    p = math.nan
    if valid.size and math.isfinite(whole_a - whole_b):
        tail = min(int((valid <= 0).sum()), int((valid >= 0).sum()))
        p = min(1.0, 2 * (tail + 1) / (valid.size + 1))
    return PairedDifference(whole_a, whole_b, whole_a - whole_b, _make_interval(moved, 0.95), p, n)


def resample_mean(values: ArrayLike) -> Resampled:
    """Make the resampled mean of one number per row, such as accuracy or nDCG."""
    row_N = check_numbers(values, name="values")
    return lambda counts_BN: counts_BN @ row_N / row_N.size


def resample_pearson(x: ArrayLike, y: ArrayLike) -> Resampled:
    """Make the resampled Pearson correlation; nan for a resample that is constant on one side."""
    x_N, y_N = check_aligned(x, y, names=("x", "y"))
    n = max(1, x_N.size)
    # Centred and scaled once on all rows: the sums below then lose no digits.
    x_N, y_N = _standardise(x_N), _standardise(y_N)
    moments_N5 = np.stack([x_N, y_N, x_N * x_N, y_N * y_N, x_N * y_N], axis=1)

    def resample(counts_BN: FloatArray) -> FloatArray:
        mx, my, xx, yy, xy = (counts_BN @ moments_N5 / n).T
        return _divide(xy - mx * my, xx - mx * mx, yy - my * my)

    return resample


def resample_spearman(x: ArrayLike, y: ArrayLike) -> Resampled:
    """Make the resampled Spearman correlation: every resample is ranked anew, exactly, without sorting it."""
    x_N, y_N = check_aligned(x, y, names=("x", "y"))
    rank_x, rank_y = _make_ranker(x_N), _make_ranker(y_N)

    def resample(counts_BN: FloatArray) -> FloatArray:
        dx_BN, dy_BN = rank_x(counts_BN), rank_y(counts_BN)
        weighted_BN = counts_BN * dx_BN
        xx, xy = np.einsum("bn,bn->b", weighted_BN, dx_BN), np.einsum("bn,bn->b", weighted_BN, dy_BN)
        yy = np.einsum("bn,bn,bn->b", counts_BN, dy_BN, dy_BN)
        return _divide(xy, xx, yy)

    return resample


def make_spearman(gold: ArrayLike) -> Statistic:
    """Make the statistic "Spearman correlation with gold" for `paired_bootstrap`."""
    return lambda scores: resample_spearman(scores, gold)


def make_pearson(gold: ArrayLike) -> Statistic:
    """Make the statistic "Pearson correlation with gold" for `paired_bootstrap`."""
    return lambda scores: resample_pearson(scores, gold)


def resample_rows(function: Callable[[IntArray], float], n: int) -> Resampled:
    """Make a resampled statistic out of any function of row numbers, repeated rows repeated; one resample at a time."""
    rows_N = np.arange(n)
    return lambda counts_BN: np.asarray([function(np.repeat(rows_N, counts_N.astype(np.int64))) for counts_N in counts_BN])


def _draw_counts(n: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Blocks of resamples, small enough for the processor's cache."""
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, expected at least 1")
    random = np.random.default_rng(seed)
    block = max(1, _BLOCK_NUMBERS // n)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn_BN = random.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn_BN.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def _make_ranker(values_N: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """counts_BN → each row's average rank in the resample, less the mean rank, shape BN."""
    order_N = np.argsort(values_N, kind="stable")
    _, group_N = np.unique(values_N, return_inverse=True)
    starts_G: IntArray | None = np.flatnonzero(np.diff(group_N[order_N], prepend=-1)).astype(np.int64)
    centre = (values_N.size + 1) / 2
    if starts_G is not None and starts_G.size == values_N.size:
        starts_G = None  # no ties: nothing to add up

    def rank(counts_BN: FloatArray) -> FloatArray:
        size_BG = counts_BN[:, order_N] if starts_G is None else np.add.reduceat(counts_BN[:, order_N], starts_G, axis=1)
        rank_BG = np.cumsum(size_BG, axis=1)
        rank_BG -= (size_BG - 1) / 2 + centre
        result: FloatArray = rank_BG[:, group_N]
        return result

    return rank


def _standardise(values: FloatArray) -> FloatArray:
    centred = values - values.mean() if values.size else values
    spread = float(np.abs(centred).max(initial=0.0))
    return centred / spread if spread > 0 else centred


def _divide(cov_B: FloatArray, var_x_B: FloatArray, var_y_B: FloatArray) -> FloatArray:
    product_B = np.where((var_x_B > 1e-15) & (var_y_B > 1e-15), var_x_B * var_y_B, np.nan)
    result: FloatArray = np.clip(cov_B / np.sqrt(product_B), -1.0, 1.0)
    return result


def _make_interval(values: FloatArray, level: float) -> Interval:
    valid = values[np.isfinite(values)]
    if not valid.size:
        return Interval(math.nan, math.nan, level)
    low, high = np.quantile(valid, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def to_jsonable(value: Any) -> Any:
    """Return `value` as JSON can hold it.

    >>> to_jsonable({"n": np.int64(3), "f1": float("nan"), "ci95": Interval(0.25, 0.5)})
    {'n': 3, 'f1': None, 'ci95': [0.25, 0.5]}
    """
    if isinstance(value, Interval):
        return to_jsonable(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_jsonable(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
