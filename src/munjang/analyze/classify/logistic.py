"""Rows and labels → the weights of a regularised logistic regression, by L-BFGS in numpy.

The loss is that of scikit-learn's LogisticRegression: `strength` times the summed log-loss, plus half the squared weights; the bias is
free. One label per row gives a softmax over labels, several give one sigmoid for each. A strength's solution is a good start for the next
one.

A fit is thousands of small products. BLAS splits each among its threads, which wait for each other: on a machine that does other work too,
400 rows took 110 seconds of processor time instead of 3. So small products run on the thread that asks for them (`OneBlasThread`).

Shapes: N rows, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from munjang.wording import brief_repr

Matrix: TypeAlias = NDArray[np.floating[Any]]
Flat: TypeAlias = NDArray[np.float64]

MEMORY = 10
"""Steps that L-BFGS remembers."""
_DECREASE = 1e-4  # share of the slope that a step must gain
_SMALLEST_STEP = 1e-6
_ROUNDING = 4  # units in the last place of the loss that say nothing
_SMALL_PRODUCT = 20_000_000  # multiplications; a larger product is worth several threads


class OneBlasThread:
    """Keeps BLAS at one thread while anybody is inside; the last one to leave gives it back what it had.

    The number of threads belongs to the process, so each caller cannot restore what it found.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._limit is None:
                self._limit = _find_blas().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()
                self._limit = None


@cache
def _find_blas() -> ThreadpoolController:
    """Return what sets the number of threads; looking through the libraries of the process takes a millisecond."""
    return ThreadpoolController()


_ONE_BLAS_THREAD = OneBlasThread()


@brief_repr
@dataclass(frozen=True, eq=False)
class LinearHead:
    """Scores of labels: weights and bias of a linear function."""

    weights_CD: Matrix
    bias_C: Matrix

    def scores(self, rows_ND: Matrix) -> Matrix:
        """Return one score per row and label."""
        return rows_ND @ self.weights_CD.T + self.bias_C


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """What is to be fitted."""

    rows_ND: Matrix
    target_NC: NDArray[np.bool_]
    weight_N: Flat
    """How much each row counts."""
    multi: bool
    """A row may have several labels or none."""

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return int(self.target_NC.shape[1])


def fit_logistic(
    problem: LogisticProblem, *, strength: float, start: LinearHead | None = None, steps: int = 300, tolerance: float = 1e-4
) -> LinearHead:
    """Return the head with the least loss; rows are best centred, which changes nothing but the speed."""
    rows, classes, width = problem.rows_ND, problem.classes, problem.rows_ND.shape[1]
    total = float(problem.weight_N.sum())
    decay = 1 / (strength * total)
    share_N1 = (problem.weight_N / total).astype(rows.dtype)[:, None]
    target_NC = problem.target_NC.astype(rows.dtype)

    def loss(flat: Flat) -> tuple[float, Flat]:
        weights_CD, bias_C = flat[: classes * width].reshape(classes, width), flat[classes * width :]
        scores_NC = rows @ weights_CD.T.astype(rows.dtype) + bias_C.astype(rows.dtype)
        value_N, error_NC = (_sigmoid_loss if problem.multi else _softmax_loss)(scores_NC, target_NC)
        error_NC *= share_N1
        slope = np.concatenate([(error_NC.T @ rows).astype(np.float64).ravel(), error_NC.sum(axis=0, dtype=np.float64)])
        slope[: classes * width] += decay * flat[: classes * width]
        penalty = 0.5 * decay * float(flat[: classes * width] @ flat[: classes * width])
        return float(share_N1[:, 0].astype(np.float64) @ value_N) + penalty, slope

    first = np.zeros(classes * (width + 1))
    if start is not None:
        first = np.concatenate([start.weights_CD.ravel(), start.bias_C]).astype(np.float64)
    with _ONE_BLAS_THREAD if rows.size * classes < _SMALL_PRODUCT else nullcontext():
        best = minimize(loss, first, steps=steps, tolerance=tolerance, noise=_ROUNDING * float(np.finfo(rows.dtype).eps))
    return LinearHead(best[: classes * width].reshape(classes, width).astype(rows.dtype), best[classes * width :].astype(rows.dtype))


def minimize(loss: Callable[[Flat], tuple[float, Flat]], start: Flat, *, steps: int, tolerance: float, noise: float) -> Flat:
    """Return where a smooth convex function is least, to a gradient of `tolerance` times its first one; `noise` is its relative error."""
    place, (value, slope) = start, loss(start)
    small = tolerance * max(float(np.abs(slope).max()), 1e-12)
    moves: list[tuple[Flat, Flat, float]] = []
    for _ in range(steps):
        if float(np.abs(slope).max()) <= small:
            break
        way = -_scale_by_curvature(slope, moves)
        gain = float(way @ slope)
        if gain >= 0:  # rounding has spoilt the memory
            moves.clear()
            way, gain = -slope, -float(slope @ slope)
        step = 1.0 if moves else min(1.0, 1.0 / float(np.sqrt(-gain)))
        while step > _SMALLEST_STEP:
            new_value, new_slope = loss(place + step * way)
            if new_value <= value + _DECREASE * step * gain + noise * abs(value):
                break
            step /= 2
        else:
            break  # as far as the numbers go
        move, bend = step * way, new_slope - slope
        curvature = float(move @ bend)
        if curvature > 1e-10 * float(np.sqrt((move @ move) * (bend @ bend))):
            moves = [*moves[1 - MEMORY :], (move, bend, 1 / curvature)]
        place, value, slope = place + move, new_value, new_slope
    return place


def _scale_by_curvature(slope: Flat, moves: list[tuple[Flat, Flat, float]]) -> Flat:
    """Multiply by the inverse of the Hessian that the remembered steps suggest."""
    result = slope.copy()
    shares = []
    for move, bend, inverse in reversed(moves):
        shares.append(inverse * float(move @ result))
        result -= shares[-1] * bend
    if moves:
        move, bend, inverse = moves[-1]
        result *= 1 / (inverse * float(bend @ bend))
    for (move, bend, inverse), share in zip(moves, reversed(shares), strict=True):
        result += (share - inverse * float(bend @ result)) * move
    return result


def _softmax_loss(scores_NC: Matrix, target_NC: Matrix) -> tuple[Flat, Matrix]:
    scores_NC -= scores_NC.max(axis=1, keepdims=True)
    right_N = np.einsum("nc,nc->n", scores_NC, target_NC)
    np.exp(scores_NC, out=scores_NC)
    sum_N = scores_NC.sum(axis=1)
    scores_NC /= sum_N[:, None]
    scores_NC -= target_NC
    return (np.log(sum_N) - right_N).astype(np.float64), scores_NC


def _sigmoid_loss(scores_NC: Matrix, target_NC: Matrix) -> tuple[Flat, Matrix]:
    value_N = (np.logaddexp(0, scores_NC) - scores_NC * target_NC).sum(axis=1)
    return value_N.astype(np.float64), 0.5 * (1 + np.tanh(0.5 * scores_NC)) - target_NC
