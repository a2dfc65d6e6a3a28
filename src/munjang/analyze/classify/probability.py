"""Scores → probabilities that mean what they say: a temperature, fitted on rows that were held out; and the confidence at a precision.

Shapes: N rows, C labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.classify.logistic import Matrix
from munjang.errors import UsageError

ASSURANCE = 0.95
"""How sure we are that the precision holds on other rows, for which the threshold is chosen."""
_TEMPERATURES = (0.02, 50.0)


def to_probabilities(scores_NC: Matrix, temperature: float, *, multi: bool) -> NDArray[np.float32]:
    """Return a softmax over labels, or with `multi` each label's own sigmoid."""
    scaled_NC = np.asarray(scores_NC, dtype=np.float64) / temperature
    if multi:
        return (0.5 * (1 + np.tanh(0.5 * scaled_NC))).astype(np.float32)
    raised_NC = np.exp(scaled_NC - scaled_NC.max(axis=1, keepdims=True))
    return np.asarray(raised_NC / raised_NC.sum(axis=1, keepdims=True), dtype=np.float32)


def log_loss(scores_NC: Matrix, target_NC: NDArray[np.bool_], temperature: float, *, multi: bool, doubt: float = 0.0) -> float:
    """Return the mean log-loss of the true labels; `doubt` is the share of each target that is given to the other labels."""
    scaled_NC = np.asarray(scores_NC, dtype=np.float64) / temperature
    if multi:
        wanted_NC = target_NC * (1 - 2 * doubt) + doubt
        return float((np.logaddexp(0, scaled_NC) - scaled_NC * wanted_NC).sum(axis=1).mean())
    highest_N = scaled_NC.max(axis=1)
    sum_N = np.log(np.exp(scaled_NC - highest_N[:, None]).sum(axis=1)) + highest_N
    return float((sum_N - (1 - doubt) * scaled_NC[target_NC] - doubt * scaled_NC.mean(axis=1)).mean())


def fit_temperature(scores_NC: Matrix, target_NC: NDArray[np.bool_], *, multi: bool) -> float:
    """Return the temperature with the least log-loss; 1 without rows.

    The loss has one minimum in the logarithm of the temperature, which a golden-section search finds. As in Platt's scaling, one row in
    N + 2 is doubted: that a few rows were all right does not make the next one certain.
    """
    if not len(scores_NC):
        return 1.0
    low, high = (math.log(each) for each in _TEMPERATURES)
    ratio = (math.sqrt(5) - 1) / 2
    doubt = 1 / (len(scores_NC) + 2)

    def loss(place: float) -> float:
        return log_loss(scores_NC, target_NC, math.exp(place), multi=multi, doubt=doubt)

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    left_loss, right_loss = loss(left), loss(right)
    while high - low > 1e-3:
        if left_loss <= right_loss:
            high, right, right_loss = right, left, left_loss
            left = high - ratio * (high - low)
            left_loss = loss(left)
        else:
            low, left, left_loss = left, right, right_loss
            right = low + ratio * (high - low)
            right_loss = loss(right)
    return math.exp((low + high) / 2)


@dataclass(frozen=True)
class Abstention:
    """From which confidence on answers are given, and what held-out rows say of it."""

    precision: float
    """What was asked for."""
    threshold: float
    reached: float
    """The precision of the held-out answers at or above the threshold."""
    share: float
    """Which share of the held-out answers that is."""
    rows: int
    """How many held-out answers were looked at."""

    def facts(self) -> dict[str, Any]:
        """Return what JSON output says."""
        return {
            "precision": self.precision,
            "threshold": round(self.threshold, 6),
            "held_out_precision": round(self.reached, 4),
            "held_out_share": round(self.share, 4),
            "held_out_rows": self.rows,
        }


def choose_threshold(confidence: ArrayLike, correct: ArrayLike, precision: float) -> Abstention:
    """Return the lowest confidence from which on answers reach a precision, with a margin for rows that nobody has seen.

    The margin is that of Wilson's one-sided interval at ASSURANCE: few answers must be better than many.
    """
    confidence_N, correct_N = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=bool)
    if not len(confidence_N):
        raise UsageError(
            f"no row was held out, so nothing says where a precision of {precision:g} is reached\n"
            "  fit with at least two different examples of each label"
        )
    order = np.argsort(-confidence_N, kind="stable")
    sorted_N, right_N = confidence_N[order], np.cumsum(correct_N[order])
    last_N = np.append(sorted_N[1:] != sorted_N[:-1], True)  # equal confidences are answered together
    answered_N = np.arange(1, len(order) + 1)
    sure_N = _lower_bound(right_N / answered_N, answered_N)
    enough = np.flatnonzero(last_N & (sure_N >= precision))
    if not len(enough):
        best = int(np.argmax(np.where(last_N, sure_N, -1)))
        raise UsageError(
            f"a precision of {precision:g} is not reached on the {len(order):,} held-out rows with any certainty; "
            f"the highest is {math.floor(1000 * sure_N[best]) / 1000:g}, for {answered_N[best] / len(order):.0%} of them\n"
            "  ask for less, or fit with more examples"
        )
    at = int(enough[-1])
    below = sorted_N[at + 1] if at + 1 < len(sorted_N) else sorted_N[at]
    return Abstention(precision, float((sorted_N[at] + below) / 2), float(right_N[at] / (at + 1)), (at + 1) / len(order), len(order))


def _lower_bound(share_N: NDArray[np.float64], rows_N: NDArray[np.int64]) -> NDArray[np.float64]:
    z = 1.6448536269514722  # the normal quantile of ASSURANCE
    middle = share_N + z * z / (2 * rows_N)
    spread = z * np.sqrt(share_N * (1 - share_N) / rows_N + z * z / (4 * rows_N * rows_N))
    bound: NDArray[np.float64] = (middle - spread) / (1 + z * z / rows_N)
    return bound
