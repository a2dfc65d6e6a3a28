"""Semantic textual similarity: pairs with gold scores → the eight correlations, with intervals, per genre, and the worst pairs.

Comes in: an Encoder and `ScoredPair`s, or two arrays of vectors and gold numbers. Names and values are those of sentence-transformers'
EmbeddingSimilarityEvaluator (`pearson_cosine`, …, `spearman_manhattan`); Euclidean and Manhattan are negative distances: more is nearer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from munjang.data.rows import ScoredPair
from munjang.errors import InputError
from munjang.evaluate.bootstrap import (
    RESAMPLES,
    Interval,
    NamedScores,
    Resamples,
    ScoreTable,
    bootstrap_intervals,
    resample_pearson,
    resample_spearman,
    to_jsonable,
)
from munjang.evaluate.inputs import FloatArray, check_numbers, check_rows, check_same_length
from munjang.evaluate.metrics import BestF1, best_f1, pair_similarities, pearson, rank_values, spearman
from munjang.evaluate.rerank import score_relevance
from munjang.options import Option, check_options, default_of
from munjang.types import Encoder, Metric, Scorer, Vectors, check_encoder
from munjang.wording import brief_repr

METRICS: tuple[Metric, ...] = get_args(Metric)


@brief_repr
@dataclass(frozen=True)
class GenreScores:
    """The two cosine correlations on the pairs of one genre."""

    genre: str
    n: int
    pearson_cosine: float
    spearman_cosine: float


@brief_repr
@dataclass(frozen=True)
class WorstPair:
    """A pair whose place by cosine is far from its place by gold; `gap` > 0 means that the model thinks it too similar."""

    a: str
    b: str
    gold: float
    cosine: float
    gap: float
    where: str


@brief_repr
@dataclass(frozen=True)
class StsResult(ScoreTable):
    """What a model scores on one STS set."""

    n: int
    scores: dict[str, float]
    ci95: dict[str, Interval]
    cosines: FloatArray = field(repr=False, compare=False)
    genres: tuple[GenreScores, ...] = ()
    worst: tuple[WorstPair, ...] = ()
    binary: BestF1 | None = None
    """The best F1 at telling pairs with gold ≥ the given cut from the others, as KLUE-STS reports."""

    def to_json(self) -> dict[str, Any]:
        """Return n, the eight numbers by name, ci95, genres and worst."""
        body: dict[str, Any] = {"n": self.n, **self.scores, "ci95": self.ci95, "genres": self.genres, "worst": self.worst}
        if self.binary is not None:
            body |= {"f1_cosine": self.binary.f1, "f1_threshold_cosine": self.binary.threshold}
        return dict(to_jsonable(body))


def evaluate_sts(
    encoder: Encoder,
    pairs: Sequence[ScoredPair],
    *,
    worst: Annotated[int, Option("Number of worst pairs to show.", min=0)] = 10,
    binary_at: float | None = None,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> StsResult:
    """Return an encoder's scores on pairs with gold scores, per genre where there are several."""
    check_options(evaluate_sts, locals())
    pairs = check_rows(pairs, ScoredPair, name="pairs")
    check_encoder(encoder)
    if not pairs:
        raise InputError("no pairs to evaluate, expected at least two")
    a, b = encode_sides(encoder, [pair.a for pair in pairs], [pair.b for pair in pairs])
    return score_sts(a, b, [pair.score for pair in pairs], pairs=pairs, worst=worst, binary_at=binary_at, resamples=resamples, seed=seed)


def score_sts(
    vectors_a: Vectors,
    vectors_b: Vectors,
    gold: ArrayLike,
    *,
    pairs: Sequence[ScoredPair] = (),
    worst: int = default_of(evaluate_sts, "worst"),
    binary_at: float | None = None,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> StsResult:
    """Return the scores of vectors already made; `pairs` lends texts and genres to the report. resamples=0: no intervals."""
    truth = check_numbers(gold, name="gold scores")
    check_same_length(vectors_a, truth, names=("vectors", "gold scores"))
    found = {metric: pair_similarities(vectors_a, vectors_b, metric=metric) for metric in METRICS}
    cosines = found["cosine"]
    named = {"pearson": pearson, "spearman": spearman}
    scores = {f"{name}_{metric}": how(found[metric], truth) for name, how in named.items() for metric in METRICS}
    return StsResult(
        n=int(truth.size),
        scores=scores,
        ci95=_make_intervals(found, truth, resamples, seed) if resamples else {},
        cosines=cosines,
        genres=_score_genres(cosines, truth, pairs),
        worst=_find_worst(cosines, truth, pairs, worst),
        binary=None if binary_at is None else best_f1(cosines, truth >= binary_at - 1e-9),
    )


def encode_sides(encoder: Encoder, a: Sequence[str], b: Sequence[str]) -> tuple[Vectors, Vectors]:
    """Return the vectors of both sides from one call, so that a text on both sides is encoded once."""
    both = encoder.encode([*a, *b])
    return both[: len(a)], both[len(a) :]


def _make_intervals(found: Mapping[Metric, FloatArray], gold: FloatArray, resamples: int, seed: int) -> dict[str, Interval]:
    made = {f"pearson_{metric}": resample_pearson(scores, gold) for metric, scores in found.items()}
    made |= {f"spearman_{metric}": resample_spearman(scores, gold) for metric, scores in found.items()}
    return bootstrap_intervals(made, gold.size, resamples=resamples, seed=seed)


def _score_genres(cosines: FloatArray, gold: FloatArray, pairs: Sequence[ScoredPair]) -> tuple[GenreScores, ...]:
    names = sorted({pair.genre for pair in pairs})
    if len(names) < 2:
        return ()
    rows = {name: [row for row, pair in enumerate(pairs) if pair.genre == name] for name in names}
    return tuple(
        GenreScores(name or "(none)", len(at), pearson(cosines[at], gold[at]), spearman(cosines[at], gold[at])) for name, at in rows.items()
    )


def _find_worst(cosines: FloatArray, gold: FloatArray, pairs: Sequence[ScoredPair], count: int) -> tuple[WorstPair, ...]:
    """Farthest apart by rank, as a share of all ranks: free of the scale of either side."""
    if not pairs or gold.size < 2 or math.isclose(float(np.ptp(gold)), 0.0):
        return ()
    gaps = (rank_values(cosines) - rank_values(gold)) / gold.size
    at = np.argsort(-np.abs(gaps), kind="stable")[:count]
    return tuple(WorstPair(pairs[i].a, pairs[i].b, float(gold[i]), float(cosines[i]), float(gaps[i]), pairs[i].where) for i in at)


def evaluate_sts_scores(scorer: Scorer, pairs: Sequence[ScoredPair], *, resamples: Resamples = RESAMPLES, seed: int = 0) -> NamedScores:
    """Return a cross-encoder's correlations on pairs with gold scores; a model with several labels is refused."""
    check_options(evaluate_sts_scores, locals())
    pairs = check_rows(pairs, ScoredPair, name="pairs")
    if not pairs:
        raise InputError("no pairs to evaluate, expected at least two")
    scores = score_relevance(scorer, [(pair.a, pair.b) for pair in pairs])
    return score_correlations(scores, [pair.score for pair in pairs], resamples=resamples, seed=seed)


def score_correlations(scores: ArrayLike, gold: ArrayLike, *, resamples: Resamples = RESAMPLES, seed: int = 0) -> NamedScores:
    """Return the correlations of scores already made. resamples=0 leaves the intervals out."""
    found, truth = check_numbers(scores, name="scores"), check_numbers(gold, name="gold scores")
    check_same_length(found, truth, names=("scores", "gold scores"))
    made = {"pearson": resample_pearson(found, truth), "spearman": resample_spearman(found, truth)} if resamples else {}
    ci95 = bootstrap_intervals(made, truth.size, resamples=resamples, seed=seed) if made else {}
    return NamedScores(int(truth.size), {"pearson": pearson(found, truth), "spearman": spearman(found, truth)}, ci95)
