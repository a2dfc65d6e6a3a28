"""Retrieval: queries over a corpus → nDCG, MRR, MAP, recall and precision at k, and the run itself.

In: an Encoder and a `RetrievalTask`, or vectors, or a run made elsewhere. Search is exact. The measures follow trec_eval, so that they
equal pytrec_eval's: documents by falling score, ties by falling id; grade ≥ 1 is relevant; nDCG takes the grade as gain; MAP@k divides by
all relevant documents, also when there are more than k. A judged query that the run does not answer counts 0, and a query with no relevant
document counts 0 too: nothing is dropped from the average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import numpy as np

from munjang.data.rows import Judgements, RetrievalTask, Run, rank_documents
from munjang.errors import InputError, UsageError
from munjang.evaluate.bootstrap import RESAMPLES, Interval, Resamples, ScoreTable, bootstrap_means, to_jsonable
from munjang.evaluate.inputs import FloatArray, check_same_length
from munjang.options import Option, check_options
from munjang.types import Encoder, Metric, Vectors, check_encoder
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr

MEASURES = ("ndcg", "mrr", "map", "recall", "precision")
Cuts: TypeAlias = Annotated[Sequence[int], Option("Score the first k documents; may be repeated.", min=1, flags=("--top", "-k"))]
DEFAULT_CUTS = (1, 3, 5, 10, 100)


def score_queries(run: Run, judgements: Judgements, *, cuts: Cuts = DEFAULT_CUTS) -> dict[str, FloatArray]:
    """Return for each of `ndcg@k`, `mrr@k`, `map@k`, `recall@k`, `precision@k` one number per judged query, in their order."""
    ks = sorted(set(cuts))
    if not ks or ks[0] < 1:
        raise UsageError(f"cuts {ks}, expected whole numbers from 1")
    rows = [_score_query(rank_documents(run.get(query, {})), grades, ks) for query, grades in judgements.items()]
    names = [f"{measure}@{k}" for measure in MEASURES for k in ks]
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), len(names))
    return {name: table[:, column] for column, name in enumerate(names)}


def average(values: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the mean over queries of every measure, or nan without queries."""
    return {name: float(column.mean()) if column.size else math.nan for name, column in values.items()}


def _score_query(documents: Sequence[str], grades: Mapping[str, int], ks: Sequence[int]) -> list[float]:
    """The five measures of one query, each at every k, in the order of MEASURES."""
    gains = np.maximum([grades.get(doc, 0) for doc in documents[: ks[-1]]], 0.0) if documents else np.zeros(0)
    ideal = np.sort([g for g in map(float, grades.values()) if g > 0])[::-1][: ks[-1]]
    relevant = sum(grade > 0 for grade in grades.values())
    if not relevant:
        return [0.0] * (len(MEASURES) * len(ks))
    hit = gains > 0
    found = np.cumsum(hit)
    precision_at_hit = np.cumsum(np.where(hit, found / np.arange(1, hit.size + 1), 0.0))
    first = int(np.argmax(hit)) + 1 if hit.any() else 0
    dcg, best = _accumulate_gain(gains), _accumulate_gain(ideal)
    return [
        *(_get_total(dcg, k) / _get_total(best, k) for k in ks),
        *(1 / first if 0 < first <= k else 0.0 for k in ks),
        *(_get_total(precision_at_hit, k) / relevant for k in ks),
        *(_get_total(found, k) / relevant for k in ks),
        *(_get_total(found, k) / k for k in ks),
    ]


def _accumulate_gain(gains: FloatArray) -> FloatArray:
    total: FloatArray = np.cumsum(gains / np.log2(np.arange(2, gains.size + 2)))
    return total


def _get_total(cumulative: np.typing.NDArray[np.generic], k: int) -> float:
    """The running total after k documents, or after the last if there are fewer."""
    return float(cumulative[min(k, cumulative.size) - 1]) if cumulative.size else 0.0


@brief_repr
@dataclass(frozen=True)
class RetrievalResult(ScoreTable):
    """Means over the judged queries, each query's own numbers, and the run that they come from."""

    queries: int
    documents: int
    scores: dict[str, float]
    ci95: dict[str, Interval]
    per_query: dict[str, FloatArray] = field(repr=False, compare=False)
    run: Run = field(repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return counts, means by name (`ndcg@10`, …) and ci95; not the run."""
        return dict(to_jsonable({"queries": self.queries, "documents": self.documents, **self.scores, "ci95": self.ci95}))


def evaluate_retrieval(
    encoder: Encoder,
    task: RetrievalTask,
    *,
    query_encoder: Encoder | None = None,
    metric: Metric = "cosine",
    cuts: Cuts = DEFAULT_CUTS,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> RetrievalResult:
    """Return an encoder's scores on a task; `query_encoder` is the same model with its query prompt, where it has one."""
    check_options(evaluate_retrieval, locals())
    cuts = sorted(set(cuts))
    run = search_task(encoder, task, k=max(cuts, default=1), query_encoder=query_encoder, metric=metric)
    return score_run(run, task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples, seed=seed)


def search_task(
    encoder: Encoder, task: RetrievalTask, *, k: int, query_encoder: Encoder | None = None, metric: Metric = "cosine"
) -> dict[str, dict[str, float]]:
    """Return the k nearest documents of every judged query, exactly."""
    check_encoder(encoder)
    check_encoder(query_encoder or encoder, "query_encoder")
    if not task.corpus or not task.judgements:
        raise InputError(
            f"{task.source or 'task'}: {len(task.corpus)} documents and {len(task.judgements)} judged queries, expected some of each"
        )
    asked = [query for query in task.queries if query in task.judgements]
    corpus = encoder.encode(list(task.corpus.values()))
    queries = (query_encoder or encoder).encode([task.queries[query] for query in asked])
    return search_vectors(queries, corpus, query_ids=asked, document_ids=list(task.corpus), k=k, metric=metric)


def search_vectors(
    queries: Vectors, corpus: Vectors, *, query_ids: Sequence[str], document_ids: Sequence[str], k: int, metric: Metric = "cosine"
) -> dict[str, dict[str, float]]:
    """Return the k nearest documents of every query vector, by id."""
    check_same_length(queries, query_ids, names=("query vectors", "query ids"))
    check_same_length(corpus, document_ids, names=("document vectors", "document ids"))
    scores, found = top_k(queries, corpus, k=k, metric=metric)
    return {
        query: {document_ids[column]: float(score) for column, score in zip(found[row], scores[row], strict=True)}
        for row, query in enumerate(query_ids)
    }


def score_run(
    run: Run, judgements: Judgements, *, documents: int = 0, cuts: Cuts = DEFAULT_CUTS, resamples: Resamples = RESAMPLES, seed: int = 0
) -> RetrievalResult:
    """Return the scores of a run made anywhere. resamples=0 leaves the intervals out."""
    values = score_queries(run, judgements, cuts=cuts)
    n = len(judgements)
    named = [name for name in values if name.split("@")[0] in ("ndcg", "mrr")] if resamples else []
    ci95 = bootstrap_means({name: values[name] for name in named}, resamples=resamples, seed=seed)
    return RetrievalResult(n, documents, average(values), ci95, values, run)
