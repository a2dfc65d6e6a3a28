"""Two systems on one set → their scores, the difference, its interval, and how likely it is by chance (paired bootstrap).

Comes in: two Encoders and data, or two lists of scores for the same rows. Both systems see the same resampled rows, so that hard rows
count for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from munjang.data.rows import LabelledPair, RetrievalTask, ScoredPair
from munjang.errors import UsageError
from munjang.evaluate.bootstrap import (
    PAIRS_RESAMPLES,
    RESAMPLES,
    Interval,
    PairedDifference,
    Resampled,
    Statistic,
    make_pearson,
    make_spearman,
    paired_bootstrap,
    resample_mean,
    resample_rows,
    to_jsonable,
)
from munjang.evaluate.classification import average_precision
from munjang.evaluate.correlation import pair_similarities
from munjang.evaluate.inputs import FloatArray, check_binary, check_rows, refuse_flat_gold
from munjang.evaluate.pairs import make_binary_labels
from munjang.evaluate.retrieval import score_queries, search_task
from munjang.evaluate.sts import encode_sides
from munjang.options import Option, check_options
from munjang.types import Encoder, check_encoder
from munjang.wording import brief_repr

Against: TypeAlias = Literal["spearman", "pearson", "ap"]
PairedResamples: TypeAlias = Annotated[int, Option("Bootstrap resamples.", min=1)]


@brief_repr
@dataclass(frozen=True)
class Comparison:
    """One measure of systems a and b on the same rows; difference = a − b."""

    metric: str
    n: int
    a: float
    b: float
    difference: float
    ci95: Interval
    p: float

    @property
    def winner(self) -> str:
        """Which system is better beyond chance (p < 0.05): "a", "b" or "neither"."""
        if not self.p < 0.05:
            return "neither"
        return "a" if self.difference > 0 else "b"

    def to_json(self) -> dict[str, Any]:
        """Return every number, and the winner."""
        return {**to_jsonable(self), "winner": self.winner}


def compare_scores(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    gold: ArrayLike,
    *,
    against: Against = "spearman",
    resamples: PairedResamples = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return two score lists compared by their agreement with gold numbers, or for "ap" with labels of 0 and 1."""
    statistics: dict[str, Statistic] = {"spearman": make_spearman(gold), "pearson": make_pearson(gold)}
    if against == "ap":
        statistics["ap"] = _average_precision_with(gold)
    if against not in statistics:
        raise UsageError(f"no statistic is called {against!r}\n  choose spearman, pearson or ap")
    return _make_comparison(against, paired_bootstrap(scores_a, scores_b, statistics[against], resamples=resamples, seed=seed))


def compare_sts(
    a: Encoder,
    b: Encoder,
    pairs: Sequence[ScoredPair],
    *,
    against: Against = "spearman",
    resamples: PairedResamples = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return two encoders compared on an STS set, by cosine."""
    check_options(compare_sts, locals())
    pairs = check_rows(pairs, ScoredPair, name="pairs")
    _check(a, b)
    gold = [pair.score for pair in pairs]
    refuse_flat_gold(gold)
    cosines = [_measure_cosines(encoder, pairs) for encoder in (a, b)]
    made = compare_scores(cosines[0], cosines[1], gold, against=against, resamples=resamples, seed=seed)
    return Comparison(f"{against}_cosine", made.n, made.a, made.b, made.difference, made.ci95, made.p)


def compare_pairs(
    a: Encoder, b: Encoder, pairs: Sequence[LabelledPair], *, resamples: PairedResamples = PAIRS_RESAMPLES, seed: int = 0
) -> Comparison:
    """Return two encoders compared at telling same from different, by average precision of cosine."""
    check_options(compare_pairs, locals())
    pairs = check_rows(pairs, LabelledPair, name="pairs")
    _check(a, b)
    gold = make_binary_labels(pairs)
    cosines = [_measure_cosines(encoder, pairs) for encoder in (a, b)]
    made = paired_bootstrap(cosines[0], cosines[1], _average_precision_with(gold), resamples=resamples, seed=seed)
    return _make_comparison("cosine_ap", made)


def compare_retrieval(
    a: Encoder,
    b: Encoder,
    task: RetrievalTask,
    *,
    query_encoders: tuple[Encoder, Encoder] | None = None,
    metric: Annotated[str, Option("ndcg@k, mrr@k, map@k, recall@k or precision@k.")] = "ndcg@10",
    resamples: PairedResamples = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return two encoders compared on a retrieval task, by one measure averaged over queries.

    `query_encoders` are the same two models with their query prompts, where they have one.
    """
    check_options(compare_retrieval, locals())
    _check(a, b)
    measure, _, cut = metric.partition("@")
    if not cut.isdigit() or measure not in ("ndcg", "mrr", "map", "recall", "precision"):
        raise UsageError(f"metric {metric!r}, expected for example ndcg@10, mrr@10, map@100, recall@100 or precision@5")
    k = int(cut)
    askers = query_encoders or (a, b)
    runs = [search_task(encoder, task, k=k, query_encoder=asker) for encoder, asker in zip((a, b), askers, strict=True)]
    values = [score_queries(run, task.judgements, cuts=[k])[metric] for run in runs]
    return _make_comparison(metric, paired_bootstrap(values[0], values[1], resample_mean, resamples=resamples, seed=seed))


def _check(a: Encoder, b: Encoder) -> None:
    check_encoder(a, "a")
    check_encoder(b, "b")


def _measure_cosines(encoder: Encoder, pairs: Sequence[ScoredPair] | Sequence[LabelledPair]) -> FloatArray:
    left, right = encode_sides(encoder, [pair.a for pair in pairs], [pair.b for pair in pairs])
    return pair_similarities(left, right)


def _average_precision_with(gold: ArrayLike) -> Statistic:
    labels = check_binary(gold)

    def statistic(scores: FloatArray) -> Resampled:
        return resample_rows(lambda rows: average_precision(scores[rows], labels[rows]), labels.size)

    return statistic


def _make_comparison(metric: str, found: PairedDifference) -> Comparison:
    return Comparison(metric, found.n, found.a, found.b, found.difference, found.ci95, found.p)
