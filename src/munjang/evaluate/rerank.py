"""Re-ranking: a first run and a Scorer → the run in the Scorer's order, and the scores before and after.

Only the first `depth` documents of a query are scored again; those below keep their order under them, so that recall at larger k does not
move. A Scorer is a cross-encoder, or, for a stronger sentence encoder than the one that made the run, a `CosineScorer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from munjang.data.rows import RetrievalTask, Run, rank_documents
from munjang.errors import InputError, UsageError, quote
from munjang.evaluate.bootstrap import RESAMPLES, PairedDifference, Resamples, paired_bootstrap, resample_mean, to_jsonable
from munjang.evaluate.inputs import FloatArray, check_numbers
from munjang.evaluate.metrics import pair_similarities
from munjang.evaluate.retrieval import DEFAULT_CUTS, Cuts, RetrievalResult, score_run
from munjang.options import Option, check_options, default_of
from munjang.types import Encoder, Scorer, Vectors, check_encoder, check_scorer
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class RerankEvaluation:
    """The same queries before and after re-ranking, and whether the gain in nDCG at the main cut is real."""

    before: RetrievalResult
    after: RetrievalResult
    main: str
    gain: PairedDifference
    pairs: int

    def to_json(self) -> dict[str, Any]:
        """Return after's numbers at the top, before's beneath, and the gain."""
        gain = {"metric": self.main, "difference": self.gain.difference, "ci95": self.gain.ci95, "p": self.gain.p}
        return {**self.after.to_json(), "before": self.before.to_json(), "gain": to_jsonable(gain), "pairs": self.pairs}


def evaluate_rerank(
    scorer: Scorer,
    task: RetrievalTask,
    run: Run,
    *,
    depth: Annotated[int, Option("Documents to re-rank per query.", min=1)] = 100,
    cuts: Cuts = DEFAULT_CUTS,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> RerankEvaluation:
    """Return what a cross-encoder makes of a first run."""
    check_options(evaluate_rerank, locals())
    cuts = sorted(set(cuts))
    candidates = [(query, document) for query in task.judgements for document in rank_documents(run.get(query, {}))[:depth]]
    new = rerank_run(scorer, task, run, depth=depth)
    before = score_run(run, task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples, seed=seed)
    after = score_run(new, task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples, seed=seed)
    main = "ndcg@10" if 10 in cuts else f"ndcg@{cuts[-1]}"
    gain = paired_bootstrap(after.per_query[main], before.per_query[main], resample_mean, resamples=resamples or 1, seed=seed)
    return RerankEvaluation(before, after, main, gain, len(candidates))


def rerank_run(
    scorer: Scorer, task: RetrievalTask, run: Run, *, depth: int = default_of(evaluate_rerank, "depth")
) -> dict[str, dict[str, float]]:
    """Return the run with the first `depth` documents of each judged query in the Scorer's order."""
    check_scorer(scorer)
    if depth < 1:
        raise UsageError(f"depth is {depth}, expected at least 1")
    result: dict[str, dict[str, float]] = {}
    for query in task.judgements:
        order = rank_documents(run.get(query, {}))
        if order and query not in task.queries:
            raise InputError(f"query {quote(query)} is judged and in the run, but the task has no text for it")
        unknown = next((document for document in order if document not in task.corpus), None)
        if unknown is not None:
            raise InputError(f"the run names document {quote(unknown)} for query {quote(query)}, which is not in the corpus")
        head, tail = order[:depth], order[depth:]
        if not head:
            continue
        scores = score_relevance(scorer, [(task.queries[query], task.corpus[document]) for document in head])
        floor = float(scores.min())
        result[query] = dict(zip(head, scores.tolist(), strict=True)) | {doc: floor - 1.0 - place for place, doc in enumerate(tail)}
    return result


def score_relevance(scorer: Scorer, pairs: list[tuple[str, str]]) -> FloatArray:
    """Return one relevance per pair, and refuse a classifier with several labels."""
    check_scorer(scorer)
    scores = np.asarray(scorer.predict(pairs), dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != (len(pairs),):
        raise InputError(
            f"the model gives scores of shape {scores.shape} for {len(pairs)} pairs, expected one number each\n  use a model with one label"
        )
    return check_numbers(scores, name="scores")


@brief_repr
@dataclass(frozen=True)
class CosineScorer:
    """Scores pairs of texts whose vectors it holds."""

    queries: Mapping[str, Vectors]
    documents: Mapping[str, Vectors]

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return the cosine of each pair."""
        if not pairs:
            return np.zeros(0, np.float32)
        left, right = np.stack([self.queries[query] for query, _ in pairs]), np.stack([self.documents[document] for _, document in pairs])
        return pair_similarities(left, right).astype(np.float32)


def make_cosine_scorer(
    encoder: Encoder, task: RetrievalTask, run: Run, *, depth: int, query_encoder: Encoder | None = None
) -> CosineScorer:
    """Return a scorer for the judged queries of a task and the first `depth` documents that the run has for each."""
    check_encoder(encoder)
    check_encoder(query_encoder or encoder, "query_encoder")
    asked = dict.fromkeys(task.queries[query] for query in task.judgements if query in task.queries)
    head = [document for query in task.judgements for document in rank_documents(run.get(query, {}))[:depth]]
    found = dict.fromkeys(task.corpus[document] for document in head if document in task.corpus)
    queries, documents = list(asked), list(found)
    return CosineScorer(
        dict(zip(queries, (query_encoder or encoder).encode(queries), strict=True)),
        dict(zip(documents, encoder.encode(documents), strict=True)),
    )
