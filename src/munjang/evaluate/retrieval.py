"""Retrieval: queries over a corpus → nDCG, MRR, MAP, recall and precision at k, and the run itself.

Comes in: an Encoder and a `RetrievalTask` (BEIR, SQuAD, Cranfield readers make one), or vectors, or a run made elsewhere. Search is
exact. TREC run files are `datasets/trec.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from munjang.errors import InputError
from munjang.evaluate.bootstrap import RESAMPLES, Interval, mean_intervals
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.inputs import FloatArray, same_length
from munjang.evaluate.ranking import DEFAULT_CUTS, Judgements, Run, average, per_query
from munjang.evaluate.result import jsonable
from munjang.types import Encoder, Metric, Vectors, check_encoder
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class RetrievalResult:
    """Means over the judged queries, each query's own numbers, and the run that they come from."""

    queries: int
    documents: int
    scores: dict[str, float]
    ci95: dict[str, Interval]
    per_query: dict[str, FloatArray] = field(repr=False, compare=False)
    run: Run = field(repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return counts, means by name (`ndcg@10`, …) and ci95; not the run."""
        return dict(jsonable({"queries": self.queries, "documents": self.documents, **self.scores, "ci95": self.ci95}))


def evaluate_retrieval(
    encoder: Encoder,
    task: RetrievalTask,
    *,
    query_encoder: Encoder | None = None,
    metric: Metric = "cosine",
    cuts: Iterable[int] = DEFAULT_CUTS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RetrievalResult:
    """Return an encoder's scores on a task; `query_encoder` is the same model with its query prompt, where it has one."""
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
    return run_of(queries, corpus, query_ids=asked, document_ids=list(task.corpus), k=k, metric=metric)


def run_of(
    queries: Vectors, corpus: Vectors, *, query_ids: Sequence[str], document_ids: Sequence[str], k: int, metric: Metric = "cosine"
) -> dict[str, dict[str, float]]:
    """Return the k nearest documents of every query vector, by id."""
    same_length(queries, query_ids, names=("query vectors", "query ids"))
    same_length(corpus, document_ids, names=("document vectors", "document ids"))
    scores, found = top_k(queries, corpus, k=k, metric=metric)
    return {
        query: {document_ids[column]: float(score) for column, score in zip(found[row], scores[row], strict=True)}
        for row, query in enumerate(query_ids)
    }


def score_run(
    run: Run,
    judgements: Judgements,
    *,
    documents: int = 0,
    cuts: Iterable[int] = DEFAULT_CUTS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RetrievalResult:
    """Return the scores of a run made anywhere. resamples=0 leaves the intervals out."""
    values = per_query(run, judgements, cuts=cuts)
    n = len(judgements)
    named = [name for name in values if name.split("@")[0] in ("ndcg", "mrr")] if resamples else []
    ci95 = mean_intervals({name: values[name] for name in named}, resamples=resamples, seed=seed)
    return RetrievalResult(n, documents, average(values), ci95, values, run)
