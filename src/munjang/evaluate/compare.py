"""Two systems on one set → their scores, the difference, its interval, and how likely it is by chance (paired bootstrap).

Comes in: two Encoders or Scorers and data, or two lists of scores for the same rows. Both systems see the same resampled rows, so that
hard rows count for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from munjang.evaluate.inputs import FloatArray, check_binary, check_rows, refuse_flat_gold
from munjang.evaluate.metrics import average_precision
from munjang.evaluate.nli import mark_right
from munjang.evaluate.pairs import PairJudge, check_judge, is_scorer, make_binary_labels, measure_pairs
from munjang.evaluate.retrieval import score_queries, search_task
from munjang.options import Option, check_options
from munjang.types import Encoder, Scorer, check_encoder
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
    a: PairJudge,
    b: PairJudge,
    pairs: Sequence[ScoredPair],
    *,
    against: Against = "spearman",
    resamples: PairedResamples = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return two models compared on an STS set: encoders by cosine, cross-encoders by their score."""
    check_options(compare_sts, locals())
    pairs = check_rows(pairs, ScoredPair, name="pairs")
    check_judge(a, "a")
    check_judge(b, "b")
    gold = [pair.score for pair in pairs]
    refuse_flat_gold(gold)
    scores_a, scores_b = (measure_pairs(model, pairs) for model in (a, b))
    made = compare_scores(scores_a, scores_b, gold, against=against, resamples=resamples, seed=seed)
    metric = against if is_scorer(a) or is_scorer(b) else f"{against}_cosine"
    return replace(made, metric=metric)


def compare_pairs(
    a: PairJudge, b: PairJudge, pairs: Sequence[LabelledPair], *, resamples: PairedResamples = PAIRS_RESAMPLES, seed: int = 0
) -> Comparison:
    """Return two models compared at telling same from different, by average precision of cosine or score."""
    check_options(compare_pairs, locals())
    pairs = check_rows(pairs, LabelledPair, name="pairs")
    check_judge(a, "a")
    check_judge(b, "b")
    gold = make_binary_labels(pairs)
    scores_a, scores_b = (measure_pairs(model, pairs) for model in (a, b))
    made = paired_bootstrap(scores_a, scores_b, _average_precision_with(gold), resamples=resamples, seed=seed)
    return _make_comparison("ap" if is_scorer(a) or is_scorer(b) else "cosine_ap", made)


def compare_nli(
    a: Scorer,
    b: Scorer,
    pairs: Sequence[LabelledPair],
    *,
    labels: tuple[Sequence[str], Sequence[str]],
    resamples: PairedResamples = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return two classifiers of pairs compared by accuracy; `labels` names the outputs of each in order."""
    check_options(compare_nli, locals())
    pairs = check_rows(pairs, LabelledPair, name="pairs")
    right = [mark_right(scorer, pairs, labels=names) for scorer, names in zip((a, b), labels, strict=True)]
    return _make_comparison("accuracy", paired_bootstrap(right[0], right[1], resample_mean, resamples=resamples, seed=seed))


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
    check_encoder(a, "a")
    check_encoder(b, "b")
    measure, _, cut = metric.partition("@")
    if not cut.isdigit() or measure not in ("ndcg", "mrr", "map", "recall", "precision"):
        raise UsageError(f"metric {metric!r}, expected for example ndcg@10, mrr@10, map@100, recall@100 or precision@5")
    k = int(cut)
    askers = query_encoders or (a, b)
    runs = [search_task(encoder, task, k=k, query_encoder=asker) for encoder, asker in zip((a, b), askers, strict=True)]
    values = [score_queries(run, task.judgements, cuts=[k])[metric] for run in runs]
    return _make_comparison(metric, paired_bootstrap(values[0], values[1], resample_mean, resamples=resamples, seed=seed))


def _average_precision_with(gold: ArrayLike) -> Statistic:
    labels = check_binary(gold)

    def statistic(scores: FloatArray) -> Resampled:
        return resample_rows(lambda rows: average_precision(scores[rows], labels[rows]), labels.size)

    return statistic


def _make_comparison(metric: str, found: PairedDifference) -> Comparison:
    return Comparison(metric, found.n, found.a, found.b, found.difference, found.ci95, found.p)
