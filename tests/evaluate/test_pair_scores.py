"""Encoders and Scorers are judged by the same functions: scikit-learn's numbers of a Scorer's scores, and classifiers by accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from munjang.data.rows import LabelledPair, ScoredPair
from munjang.errors import InputError, UsageError
from munjang.evaluate.compare import compare_nli, compare_pairs, compare_sts
from munjang.evaluate.pair_scores import measure_pairs
from munjang.evaluate.pairs import evaluate_pairs

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the authority")
CHANCE = np.random.default_rng(4)
GOLD = CHANCE.integers(0, 2, 60)
PAIRS = [LabelledPair(f"a{number}", f"b{number}", str(label)) for number, label in enumerate(GOLD)]
SCORES = {f"a{number}": float(score) for number, score in enumerate(GOLD + CHANCE.normal(0, 0.8, 60))}


class Scoring:
    """Gives every pair the score of its first text, turned around if asked."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> np.ndarray:
        return np.asarray([self.sign * SCORES[a] for a, _ in pairs], np.float32)


class Labelling:
    """Predicts the label that stands in the first text."""

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> np.ndarray:
        return np.asarray([[float(a == "no"), float(a == "yes")] for a, _ in pairs], np.float32)


def test_a_scorers_numbers_are_scikit_learns() -> None:
    scores = np.asarray([SCORES[pair.a] for pair in PAIRS], np.float32)
    found = evaluate_pairs(Scoring(), PAIRS, resamples=50).scores
    assert found["ap"] == pytest.approx(metrics.average_precision_score(GOLD, scores))
    assert found["f1"] == pytest.approx(max(metrics.f1_score(GOLD, scores >= at) for at in scores))
    assert found["accuracy"] == pytest.approx(max(metrics.accuracy_score(GOLD, scores >= at) for at in scores))
    np.testing.assert_allclose(measure_pairs(Scoring(), PAIRS), scores)


def test_scorers_are_compared_by_their_scores() -> None:
    found = compare_pairs(Scoring(), Scoring(-1), PAIRS, resamples=50)
    assert (found.metric, found.winner) == ("ap", "a")
    scored = [ScoredPair(pair.a, pair.b, float(label)) for pair, label in zip(PAIRS, GOLD, strict=True)]
    assert compare_sts(Scoring(), Scoring(), scored, resamples=50).difference == 0.0


def test_classifiers_are_compared_by_accuracy() -> None:
    rows = [LabelledPair("yes", "x", "yes"), LabelledPair("no", "x", "no"), LabelledPair("yes", "x", "no")]
    found = compare_nli(Labelling(), Labelling(), rows, labels=(("no", "yes"), ("yes", "no")), resamples=20)
    assert (found.metric, found.a, found.b) == ("accuracy", pytest.approx(2 / 3), pytest.approx(1 / 3))
    with pytest.raises(InputError, match="'yes' is none of the model's: no, maybe"):
        compare_nli(Labelling(), Labelling(), rows, labels=(("no", "maybe"), ("no", "yes")))


def test_several_labels_and_what_is_no_model_are_refused() -> None:
    with pytest.raises(InputError, match="expected one number each"):
        evaluate_pairs(Labelling(), PAIRS)
    with pytest.raises(UsageError, match="model is the text 'ko-en-small'"):
        evaluate_pairs("ko-en-small", PAIRS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a is a int"):
        compare_pairs(3, Scoring(), PAIRS)  # type: ignore[arg-type]
