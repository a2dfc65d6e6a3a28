"""Ranked lists against relevance judgements → nDCG, MRR, MAP, recall and precision at k, one number per query.

Comes in: a run (query → document → score) and judgements (query → document → grade). The rules are trec_eval's, so that the numbers equal
pytrec_eval's: documents by falling score, ties by falling id; grade ≥ 1 is relevant; nDCG takes the grade as gain; MAP@k divides by all
relevant documents, also when there are more than k. A judged query that the run does not answer counts 0, and a query with no relevant
document counts 0 too: nothing leaves the average in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from munjang.errors import UsageError
from munjang.evaluate.inputs import FloatArray

Run: TypeAlias = Mapping[str, Mapping[str, float]]
Judgements: TypeAlias = Mapping[str, Mapping[str, int]]

MEASURES = ("ndcg", "mrr", "map", "recall", "precision")
DEFAULT_CUTS = (1, 3, 5, 10, 100)


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Return document ids from best to worst, as trec_eval orders them.

    >>> ranked({"a": 1.0, "b": 1.0, "c": 2.0})
    ['c', 'b', 'a']
    """
    return [doc for doc, _ in sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)]


def per_query(run: Run, judgements: Judgements, *, cuts: Iterable[int] = DEFAULT_CUTS) -> dict[str, FloatArray]:
    """Return for each of `ndcg@k`, `mrr@k`, `map@k`, `recall@k`, `precision@k` one number per judged query, in their order."""
    ks = sorted(set(cuts))
    if not ks or ks[0] < 1:
        raise UsageError(f"cuts {ks}, expected whole numbers from 1")
    rows = [_one_query(ranked(run.get(query, {})), grades, ks) for query, grades in judgements.items()]
    names = [f"{measure}@{k}" for measure in MEASURES for k in ks]
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), len(names))
    return {name: table[:, column] for column, name in enumerate(names)}


def average(values: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the mean over queries of every measure, or nan without queries."""
    return {name: float(column.mean()) if column.size else math.nan for name, column in values.items()}


def _one_query(documents: Sequence[str], grades: Mapping[str, int], ks: Sequence[int]) -> list[float]:
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
    dcg, best = _cumulative_gain(gains), _cumulative_gain(ideal)
    return [
        *(_upto(dcg, k) / _upto(best, k) for k in ks),
        *(1 / first if 0 < first <= k else 0.0 for k in ks),
        *(_upto(precision_at_hit, k) / relevant for k in ks),
        *(_upto(found, k) / relevant for k in ks),
        *(_upto(found, k) / k for k in ks),
    ]


def _cumulative_gain(gains: FloatArray) -> FloatArray:
    total: FloatArray = np.cumsum(gains / np.log2(np.arange(2, gains.size + 2)))
    return total


def _upto(cumulative: np.typing.NDArray[np.generic], k: int) -> float:
    """The running total after k documents, or after the last if there are fewer."""
    return float(cumulative[min(k, cumulative.size) - 1]) if cumulative.size else 0.0
