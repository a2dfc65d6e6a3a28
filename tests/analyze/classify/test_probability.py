"""Temperature and abstention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.analyze.classify.probability import choose_threshold, fit_temperature, log_loss, to_probabilities
from munjang.errors import UsageError


@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_scores_that_are_too_sure_or_too_shy(true: float) -> None:
    random = np.random.default_rng(0)
    scores = 2 * random.standard_normal((4_000, 5))
    chances = to_probabilities(scores, 1.0, multi=False)
    label = (chances.cumsum(axis=1) > random.random((4_000, 1))).argmax(axis=1)
    target = label[:, None] == np.arange(5)
    assert fit_temperature(scores * true, target, multi=False) == pytest.approx(true, rel=0.1)


def test_the_loss_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(1)
    scores, label = random.standard_normal((50, 4)), random.integers(0, 4, 50)
    expected = metrics.log_loss(label, to_probabilities(scores, 0.7, multi=False), labels=range(4))
    assert log_loss(scores, label[:, None] == np.arange(4), 0.7, multi=False) == pytest.approx(expected, rel=1e-4)


@given(seed=st.integers(0, 10_000), low=st.floats(0.5, 0.8), high=st.floats(0.8, 0.97))
def test_a_higher_precision_answers_less(seed: int, low: float, high: float) -> None:
    random = np.random.default_rng(seed)
    confidence = random.random(500)
    correct = random.random(500) < 0.5 + confidence / 2
    try:
        strict = choose_threshold(confidence, correct, high)
    except UsageError as error:
        assert "is not reached" in str(error)  # noqa: PT017
        return
    lenient = choose_threshold(confidence, correct, low)
    assert lenient.threshold <= strict.threshold
    assert lenient.share >= strict.share
    answered = confidence >= strict.threshold
    assert strict.share == pytest.approx(answered.mean())
    assert strict.reached == pytest.approx(correct[answered].mean())
    assert strict.reached >= high


def test_unseen_rows_nearly_always_reach_the_precision() -> None:
    random = np.random.default_rng(0)
    reached = []
    for _ in range(200):
        confidence = random.random((2, 800))
        correct = random.random((2, 800)) < 0.6 + 0.4 * confidence
        answered = confidence[1] >= choose_threshold(confidence[0], correct[0], 0.9).threshold
        reached.append(correct[1][answered].mean() if answered.any() else 1.0)
    assert np.mean(np.array(reached) >= 0.89) > 0.85


def test_a_precision_that_nothing_reaches_is_refused_with_what_is_possible() -> None:
    with pytest.raises(UsageError, match=r"is not reached on the 100 held-out rows .* the highest is 0\.\d+"):
        choose_threshold(np.linspace(0, 1, 100), np.arange(100) % 2 == 0, 0.95)
