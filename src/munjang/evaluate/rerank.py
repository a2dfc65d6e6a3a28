"""Re-ranking: a first run and a Scorer → the run in the Scorer's order, and the scores before and after.

Only the first `depth` documents of a query are scored again; those below keep their order under them, so that recall at larger k does not
move.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.errors import InputError, UsageError, shown
from munjang.evaluate.bootstrap import RESAMPLES, PairedDifference, of_mean, paired_bootstrap
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.inputs import FloatArray, numbers
from munjang.evaluate.ranking import DEFAULT_CUTS, Run, ranked
from munjang.evaluate.result import jsonable
from munjang.evaluate.retrieval import RetrievalResult, score_run
from munjang.types import Scorer, check_scorer
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class RerankResult:
    """The same queries before and after re-ranking, and whether the gain in nDCG at the main cut is real."""

    before: RetrievalResult
    after: RetrievalResult
    main: str
    gain: PairedDifference
    pairs: int

    def to_json(self) -> dict[str, Any]:
        """Return after's numbers at the top, before's beneath, and the gain."""
        gain = {"metric": self.main, "difference": self.gain.difference, "ci95": self.gain.ci95, "p": self.gain.p}
        return {**self.after.to_json(), "before": self.before.to_json(), "gain": jsonable(gain), "pairs": self.pairs}


def evaluate_rerank(
    scorer: Scorer,
    task: RetrievalTask,
    run: Run,
    *,
    depth: int = 100,
    cuts: Iterable[int] = DEFAULT_CUTS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RerankResult:
    """Return what a cross-encoder makes of a first run."""
    cuts = sorted(set(cuts))
    candidates = [(query, document) for query in task.judgements for document in ranked(run.get(query, {}))[:depth]]
    new = rerank_run(scorer, task, run, depth=depth)
    before = score_run(run, task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples, seed=seed)
    after = score_run(new, task.judgements, documents=len(task.corpus), cuts=cuts, resamples=resamples, seed=seed)
    main = "ndcg@10" if 10 in cuts else f"ndcg@{cuts[-1]}"
    gain = paired_bootstrap(after.per_query[main], before.per_query[main], of_mean, resamples=resamples or 1, seed=seed)
    return RerankResult(before, after, main, gain, len(candidates))


def rerank_run(scorer: Scorer, task: RetrievalTask, run: Run, *, depth: int = 100) -> dict[str, dict[str, float]]:
    """Return the run with the first `depth` documents of each judged query in the Scorer's order."""
    check_scorer(scorer)
    if depth < 1:
        raise UsageError(f"depth is {depth}, expected at least 1")
    result: dict[str, dict[str, float]] = {}
    for query in task.judgements:
        order = ranked(run.get(query, {}))
        if order and query not in task.queries:
            raise InputError(f"query {shown(query)} is judged and in the run, but the task has no text for it")
        unknown = next((document for document in order if document not in task.corpus), None)
        if unknown is not None:
            raise InputError(f"the run names document {shown(unknown)} for query {shown(query)}, which is not in the corpus")
        head, tail = order[:depth], order[depth:]
        if not head:
            continue
        scores = relevance(scorer, [(task.queries[query], task.corpus[document]) for document in head])
        floor = float(scores.min())
        result[query] = dict(zip(head, scores.tolist(), strict=True)) | {doc: floor - 1.0 - place for place, doc in enumerate(tail)}
    return result


def relevance(scorer: Scorer, pairs: list[tuple[str, str]]) -> FloatArray:
    """Return one relevance per pair, and refuse a classifier with several labels."""
    check_scorer(scorer)
    scores = np.asarray(scorer.predict(pairs), dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != (len(pairs),):
        raise InputError(
            f"the model gives scores of shape {scores.shape} for {len(pairs)} pairs, expected one number each\n  use a model with one label"
        )
    return numbers(scores, name="scores")
