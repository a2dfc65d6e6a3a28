"""Same or different: labelled pairs → accuracy, F1, average precision, Matthews correlation and thresholds, for four similarities.

Names are those of sentence-transformers' BinaryClassificationEvaluator (`cosine_ap`, `cosine_f1_threshold`, …); a model that scores pairs
itself has one of each (`ap`, `f1_threshold`, …). Thresholds are on similarities, so that for Euclidean and Manhattan they are negative
distances. The best threshold is chosen on the data it is scored on, as everywhere in the field: an optimistic number; `calibrate` measures
it on held-out folds. `measure_pairs` gives one score per pair, whichever model: the cosine of an Encoder, the score of a Scorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from munjang.data.rows import DIFFERENT, SAME, LabelledPair, ScoredPair
from munjang.errors import InputError, quote
from munjang.evaluate.bootstrap import (
    PAIRS_RESAMPLES,
    Interval,
    Resamples,
    ScoreTable,
    bootstrap_interval,
    resample_mean,
    resample_rows,
    to_jsonable,
)
from munjang.evaluate.inputs import FloatArray, IntArray, check_binary, check_numbers, check_rows, check_same_length
from munjang.evaluate.metrics import average_precision, best_accuracy, best_f1, matthews, pair_similarities
from munjang.evaluate.rerank import score_relevance
from munjang.evaluate.sts import METRICS, encode_sides
from munjang.options import check_options
from munjang.types import Encoder, Scorer, Vectors, check_encoder, check_scorer
from munjang.wording import brief_repr

PairJudge: TypeAlias = Encoder | Scorer
"""A sentence encoder, or a model that scores pairs itself: a cross-encoder, a pair classifier's label."""


def is_scorer(model: PairJudge) -> TypeGuard[Scorer]:
    """Say whether a model scores pairs itself; one that encodes texts is compared by its vectors."""
    return callable(getattr(model, "predict", None)) and not callable(getattr(model, "encode", None))


def as_encoder(model: PairJudge) -> Encoder:
    """Return a model that is no Scorer as what it is then."""
    return cast("Encoder", model)


def check_judge(model: PairJudge, name: str = "model") -> None:
    """Refuse what neither encodes texts nor scores pairs; `name` is the argument's."""
    if is_scorer(model):
        check_scorer(model, name)
    else:
        check_encoder(model, name)


def measure_pairs(model: PairJudge, pairs: Sequence[ScoredPair] | Sequence[LabelledPair]) -> FloatArray:
    """Return one score per pair; a Scorer with several labels is refused."""
    if is_scorer(model):
        return score_relevance(model, [(pair.a, pair.b) for pair in pairs])
    return pair_similarities(*encode_sides(as_encoder(model), [pair.a for pair in pairs], [pair.b for pair in pairs]))


@brief_repr
@dataclass(frozen=True)
class PairsResult(ScoreTable):
    """What a model scores at telling same from different."""

    n: int
    positives: int
    scores: dict[str, float]
    ci95: dict[str, Interval]
    similarities: FloatArray = field(repr=False, compare=False)
    """The cosine, or the score, of each pair."""

    def to_json(self) -> dict[str, Any]:
        """Return n, positives, every number by name, and ci95."""
        return dict(to_jsonable({"n": self.n, "positives": self.positives, **self.scores, "ci95": self.ci95}))


def evaluate_pairs(
    model: PairJudge, pairs: Sequence[LabelledPair], *, resamples: Resamples = PAIRS_RESAMPLES, seed: int = 0
) -> PairsResult:
    """Return the scores of an encoder, or of a Scorer with one score, on pairs labelled "1" (same) and "0" (different)."""
    check_options(evaluate_pairs, locals())
    pairs = check_rows(pairs, LabelledPair, name="pairs")
    check_judge(model)
    labels = make_binary_labels(pairs)
    if is_scorer(model):
        return score_pair_scores(measure_pairs(model, pairs), labels, resamples=resamples, seed=seed)
    a, b = encode_sides(as_encoder(model), [pair.a for pair in pairs], [pair.b for pair in pairs])
    return score_pair_vectors(a, b, labels, resamples=resamples, seed=seed)


def score_pair_vectors(
    vectors_a: Vectors, vectors_b: Vectors, labels: ArrayLike, *, resamples: Resamples = PAIRS_RESAMPLES, seed: int = 0
) -> PairsResult:
    """Return the scores of vectors already made. resamples=0 leaves the intervals out."""
    gold = check_binary(labels)
    check_same_length(vectors_a, gold, names=("vectors", "labels"))
    scores: dict[str, float] = {}
    for metric in METRICS:
        found = pair_similarities(vectors_a, vectors_b, metric=metric)
        scores |= {f"{metric}_{name}": value for name, value in score_binary(found, gold).items()}
    cosines = pair_similarities(vectors_a, vectors_b)
    ci95 = _make_intervals(cosines, gold, scores["cosine_accuracy_threshold"], resamples, seed) if resamples else {}
    return PairsResult(int(gold.size), int(gold.sum()), scores, ci95, cosines)


def score_pair_scores(scores: ArrayLike, labels: ArrayLike, *, resamples: Resamples = PAIRS_RESAMPLES, seed: int = 0) -> PairsResult:
    """Return the scores of one list of scores, higher meaning more likely the same. resamples=0 leaves the intervals out."""
    given, gold = check_numbers(scores, name="scores"), check_binary(labels)
    check_same_length(given, gold, names=("scores", "labels"))
    found = score_binary(given, gold)
    ci95 = _make_intervals(given, gold, found["accuracy_threshold"], resamples, seed, prefix="") if resamples else {}
    return PairsResult(int(gold.size), int(gold.sum()), found, ci95, given)


def score_binary(scores: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Return the eight numbers of one list of scores, higher meaning more likely the same."""
    at_accuracy, at_f1 = best_accuracy(scores, labels), best_f1(scores, labels)
    called = np.asarray(scores, dtype=np.float64) >= at_f1.threshold
    return {
        "accuracy": at_accuracy.accuracy,
        "accuracy_threshold": at_accuracy.threshold,
        "f1": at_f1.f1,
        "f1_threshold": at_f1.threshold,
        "precision": at_f1.precision,
        "recall": at_f1.recall,
        "ap": average_precision(scores, labels),
        "mcc": matthews(called, labels),
    }


def make_binary_labels(pairs: Sequence[LabelledPair]) -> IntArray:
    """Return 1 for same and 0 for different, and refuse any other label by file and line."""
    if not pairs:
        raise InputError("no pairs to evaluate")
    for pair in pairs:
        if pair.label not in (SAME, DIFFERENT):
            raise InputError(
                f"{pair.where or 'pairs'}: the label is {quote(pair.label)}, expected {SAME} (same) or {DIFFERENT} (different)"
            )
    return np.asarray([int(pair.label == SAME) for pair in pairs], dtype=np.int64)


def _make_intervals(
    scores: FloatArray, gold: IntArray, threshold: float, resamples: int, seed: int, *, prefix: str = "cosine_"
) -> dict[str, Interval]:
    """Accuracy with its threshold held still; average precision anew on each resample."""
    right = ((scores >= threshold) == gold).astype(np.float64)
    precision = resample_rows(lambda rows: average_precision(scores[rows], gold[rows]), gold.size)
    return {
        f"{prefix}accuracy": bootstrap_interval(resample_mean(right), gold.size, resamples=resamples, seed=seed),
        f"{prefix}ap": bootstrap_interval(precision, gold.size, resamples=resamples, seed=seed),
    }
