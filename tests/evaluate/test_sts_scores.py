"""A scorer's correlations are scipy's, and bad scores are named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.evaluate.datasets.rows import ScoredPair
from munjang.evaluate.sts_scores import evaluate_sts_scores, score_correlations
from munjang.types import Vectors

PAIRS = [ScoredPair("a" * n, "b", (n % 7) / 7, "", f"line {n}") for n in range(1, 30)]


class Lengths:
    def __init__(self, columns: int = 1) -> None:
        self.columns = columns

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        scores = np.array([np.sin(len(a)) for a, _ in pairs], np.float32)
        return scores if self.columns == 1 else np.stack([scores] * self.columns, axis=1)


def test_both_numbers_are_those_of_scipy_with_intervals_around_them() -> None:
    stats = pytest.importorskip("scipy.stats", reason="the authority is not installed")
    found = evaluate_sts_scores(Lengths(), PAIRS, resamples=500)
    scores, gold = np.sin([len(pair.a) for pair in PAIRS]), [pair.score for pair in PAIRS]
    assert found.scores["pearson"] == pytest.approx(stats.pearsonr(scores, gold)[0], abs=1e-6)
    assert found.scores["spearman"] == pytest.approx(stats.spearmanr(scores, gold)[0], abs=1e-6)
    assert all(found.ci95[name].low < value < found.ci95[name].high for name, value in found.scores.items())
    assert found.to_json()["n"] == 29
    assert score_correlations(scores, gold, resamples=0).ci95 == {}


def test_several_labels_and_nothing_to_score_are_refused() -> None:
    with pytest.raises(InputError, match="expected one number each"):
        evaluate_sts_scores(Lengths(3), PAIRS)
    with pytest.raises(InputError, match="no pairs"):
        evaluate_sts_scores(Lengths(), [])
