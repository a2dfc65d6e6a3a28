"""Scores on the user's own labelled pairs → what a score means: a probability, and the best threshold.

Two curves: isotonic (any rising curve, fitted by pooling neighbours that are out of order; needs some hundred pairs) and logistic
(Platt's sigmoid with his smoothed targets; good with few). Reported numbers are measured on held-out folds, not on the rows that the
curve was fitted to. A `Calibration` is saved as JSON and loads without running anything.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.atomic import atomic_write
from munjang.errors import DamagedFile, InputError, UsageError
from munjang.evaluate.bootstrap import to_jsonable
from munjang.evaluate.inputs import FloatArray, IntArray, check_binary, check_numbers, check_same_length
from munjang.evaluate.metrics import best_f1, f1_at
from munjang.limits import LIMITS
from munjang.options import Option, check_options, default_of
from munjang.wording import brief_repr

Method: TypeAlias = Literal["isotonic", "logistic"]
_FORMAT = "munjang-calibration-1"


@brief_repr
@dataclass(frozen=True)
class Calibration:
    """A rising curve from score to probability, and the threshold of the best F1.

    Isotonic is straight between its points; logistic is the sigmoid of slope × score + intercept.
    """

    method: Method
    threshold: float
    points: tuple[tuple[float, float], ...] = ()
    slope: float = 0.0
    intercept: float = 0.0

    def probability(self, scores: ArrayLike) -> FloatArray:
        """Return the probability that each pair is a match; beyond the fitted scores isotonic holds its last value."""
        values = check_numbers(np.atleast_1d(np.asarray(scores, dtype=np.float64)), name="scores")
        if self.method == "logistic":
            return _sigmoid(self.slope * values + self.intercept)
        return np.interp(values, [x for x, _ in self.points], [y for _, y in self.points])

    def to_json(self) -> dict[str, Any]:
        """Return the curve as JSON values that `parse_calibration` reads back exactly."""
        return {
            "format": _FORMAT,
            "method": self.method,
            "threshold": self.threshold,
            "points": [list(point) for point in self.points],
            "slope": self.slope,
            "intercept": self.intercept,
        }


@brief_repr
@dataclass(frozen=True)
class CalibrationReport:
    """A calibration, and how good it is on rows it has not seen (five folds)."""

    calibration: Calibration
    n: int
    positives: int
    ece: float
    brier: float
    f1: float
    """F1 on each held-out fold at the threshold chosen on the others."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers and the curve."""
        numbers_only = {"n": self.n, "positives": self.positives, "ece": self.ece, "brier": self.brier, "f1": self.f1}
        return {**to_jsonable(numbers_only), "calibration": self.calibration.to_json()}


def calibrate(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    method: Annotated[
        Method, Option("isotonic: any rising curve (needs some hundred pairs); logistic: a sigmoid (works with few).")
    ] = "isotonic",
    folds: int = 5,
    seed: int = 0,
) -> CalibrationReport:
    """Return the curve fitted on all rows, and its error measured by cross-validation."""
    check_options(calibrate, locals())
    s, g = _check_labels(scores, labels)
    smaller = int(min(g.sum(), g.size - g.sum()))
    if not 2 <= folds <= smaller:
        raise InputError(f"{smaller} pairs of the rarer label, expected at least {max(folds, 2)} (one for each fold)\n  label more pairs")
    fold = _make_folds(g, folds, seed)
    held, f1s = np.empty(g.size), []
    for number in range(folds):
        part = fold == number
        fitted = fit(s[~part], g[~part], method=method)
        held[part] = fitted.probability(s[part])
        f1s.append(f1_at(s[part], g[part], threshold=fitted.threshold))
    return CalibrationReport(
        fit(s, g, method=method),
        n=int(g.size),
        positives=int(g.sum()),
        ece=expected_calibration_error(held, g),
        brier=float(np.mean((held - g) ** 2)),
        f1=float(np.mean(f1s)),
    )


def fit(scores: ArrayLike, labels: ArrayLike, *, method: Method = default_of(calibrate, "method")) -> Calibration:
    """Return the curve of one method, and the threshold with the best F1."""
    s, g = _check_labels(scores, labels)
    threshold = best_f1(s, g).threshold
    if method == "isotonic":
        return Calibration("isotonic", threshold, points=fit_rising_curve(s, g))
    if method == "logistic":
        slope, intercept = _fit_platt(s, g)
        return Calibration("logistic", threshold, slope=slope, intercept=intercept)
    raise UsageError(f"no calibration is called {method!r}\n  choose isotonic or logistic")


def fit_rising_curve(scores: ArrayLike, targets: ArrayLike) -> tuple[tuple[float, float], ...]:
    """Return the points of the rising curve nearest to the targets: neighbours that are out of order are pooled until none is.

    >>> fit_rising_curve([0.1, 0.2, 0.3], [0, 4, 2])
    ((0.1, 0.0), (0.2, 3.0), (0.3, 3.0))
    """
    values, wanted = check_numbers(scores, name="scores"), check_numbers(targets, name="targets")
    check_same_length(values, wanted, names=("scores", "targets"))
    xs, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    sums = np.bincount(group, weights=wanted)
    blocks: list[list[float]] = []  # [sum, count, first x, last x]
    for x, total, count in zip(xs.tolist(), sums.tolist(), counts.tolist(), strict=True):
        blocks.append([total, count, x, x])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            total_, count_, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total_, blocks[-1][1] + count_, blocks[-1][2], last]
    points: list[tuple[float, float]] = []
    for total, count, first, last in blocks:
        points += [(first, total / count)] if first == last else [(first, total / count), (last, total / count)]
    return tuple(points)


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, *, bins: int = 10) -> float:
    """Return the mean distance between promised and observed share of matches, over equal bins of probability.

    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    0.0
    """
    p, g = check_numbers(probabilities, name="probabilities"), check_binary(labels)
    check_same_length(p, g, names=("probabilities", "labels"))
    if not g.size:
        return math.nan
    at = np.clip((p * bins).astype(np.int64), 0, bins - 1)
    promised, observed = np.bincount(at, weights=p, minlength=bins), np.bincount(at, weights=g, minlength=bins)
    return float(np.abs(promised - observed).sum() / g.size)


def save_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write the curve as JSON; an older file is replaced whole or not at all."""
    atomic_write(Path(path), json.dumps(calibration.to_json(), indent=1) + "\n")


def load_calibration(path: str | Path) -> Calibration:
    """Return the curve that `save_calibration` wrote."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    if file.stat().st_size > LIMITS.max_config_bytes:
        raise DamagedFile(f"{file.name}: {file.stat().st_size:,} bytes, the limit is {LIMITS.max_config_bytes:,}")
    try:
        return parse_calibration(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{file.name}: not a calibration: {error}\n  run munjang calibrate again") from None


def parse_calibration(value: Any) -> Calibration:
    """Return the curve in a JSON value; ValueError says what is wrong with it."""
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise ValueError(f'expected "format": "{_FORMAT}"')
    try:
        points = tuple((float(x), float(y)) for x, y in value["points"])
        made = Calibration(value["method"], float(value["threshold"]), points, float(value["slope"]), float(value["intercept"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"a field is missing or of the wrong type ({error})") from None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(points))
    known = made.method == "logistic" or (made.method == "isotonic" and points)
    finite = all(map(math.isfinite, [made.threshold, made.slope, made.intercept, *(v for point in points for v in point)]))
    if not (known and finite and rising):
        raise ValueError("the method is unknown, or the curve does not rise or holds NaN")
    return made


def _check_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, IntArray]:
    s, g = check_numbers(scores, name="scores"), check_binary(labels)
    check_same_length(s, g, names=("scores", "labels"))
    if g.size == 0 or g.min() == g.max():
        raise InputError(f"{g.size} labels, all alike, expected both 0 and 1\n  label some pairs of the other kind")
    return s, g


def _make_folds(labels: IntArray, folds: int, seed: int) -> IntArray:
    """A fold for each row, every fold with its share of both labels."""
    random = np.random.default_rng(seed)
    result = np.empty(labels.size, dtype=np.int64)
    for label in (0, 1):
        rows = random.permutation(np.flatnonzero(labels == label))
        result[rows] = np.arange(rows.size) % folds
    return result


def _fit_platt(scores: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Slope and intercept that maximise the likelihood of Platt's targets, by Newton's method with step halving."""
    positives = int(labels.sum())
    target = np.where(labels == 1, (positives + 1) / (positives + 2), 1 / (labels.size - positives + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    design = np.stack([(scores - centre) / spread, np.ones_like(scores)], axis=1)
    weights = np.array([0.0, math.log((positives + 1) / (labels.size - positives + 1))])
    loss = _cross_entropy(design @ weights, target)
    for _ in range(100):
        p = _sigmoid(design @ weights)
        gradient = design.T @ (p - target)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-10 and _cross_entropy(design @ (weights - size * step), target) > loss:
            size /= 2
        weights = weights - size * step
        new = _cross_entropy(design @ weights, target)
        if np.abs(gradient).max() < 1e-10 * labels.size or loss - new <= 0:
            break
        loss = new
    return float(weights[0] / spread), float(weights[1] - weights[0] * centre / spread)


def _cross_entropy(logits: FloatArray, target: FloatArray) -> float:
    return float((np.logaddexp(0.0, logits) - target * logits).sum())


def _sigmoid(x: FloatArray) -> FloatArray:
    result: FloatArray = np.exp(-np.logaddexp(0.0, -x))
    return result
