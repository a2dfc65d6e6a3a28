"""Queries → rows of the store, best first: by meaning, by words, or by both fused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.library.fuse import Hybrid, fuse_ranks, fuse_scores
from munjang.library.meaning import Meaning
from munjang.library.store import BM25_MOST, Scored, Store
from munjang.library.where import Condition
from munjang.types import Vectors

FUSED_AT_LEAST = 200
"""Rows of each ranking that are fused at least, so that a small k does not change who is first."""

COSINES = (-1.0, 1.0)
"""The lowest and the highest cosine."""


@dataclass(frozen=True)
class Query:
    """One thing to look for: a unit vector, and the words of the question if it has any."""

    vector_D: Vectors
    words: tuple[str, ...]


@dataclass(frozen=True)
class Ranked:
    """A row, its score, and where that comes from."""

    row: int
    score: float
    cosine: float | None = None
    meaning_rank: int | None = None
    bm25: float | None = None
    words_rank: int | None = None


def rank_rows(
    store: Store,
    meaning: Meaning,
    queries: Sequence[Query],
    depth: int,
    *,
    where: Condition | None,
    hybrid: Hybrid | None,
    exact: bool | None,
) -> list[list[Ranked]]:
    """Return at least `depth` rows for each query if there are so many."""
    if hybrid is None:
        found = _by_meaning(meaning, queries, depth, where, exact)
        return [[Ranked(each.row, each.score, each.score, rank) for rank, each in enumerate(one, start=1)] for one in found]
    depth = max(FUSED_AT_LEAST, 2 * depth)
    by_meaning = _by_meaning(meaning, queries, depth, where, exact) if hybrid.meaning else [[] for _ in queries]
    answers = []
    for query, dense in zip(queries, by_meaning, strict=True):
        lexical = store.lexical(query.words, depth, where=where) if hybrid.words else []
        highest = highest_bm25(*store.word_frequencies(query.words)) if lexical and hybrid.by == "scores" else 0.0
        answers.append(_fused(dense, lexical, highest, hybrid))
    return answers


def _by_meaning(meaning: Meaning, queries: Sequence[Query], depth: int, where: Condition | None, exact: bool | None) -> list[list[Scored]]:
    return meaning.nearest(np.stack([query.vector_D for query in queries]), depth, where=where, exact=exact)


def highest_bm25(passages: int, frequencies: Sequence[int]) -> float:
    """Return the bound that no passage's BM25 reaches: every word asked for, again and again. `frequencies` are passages that hold each.

    >>> round(highest_bm25(10, [0, 2]), 3)
    9.39
    """
    weights = (max(math.log((passages - count + 0.5) / (count + 0.5)), 1e-6) for count in frequencies)
    return BM25_MOST * sum(weights)


def _fused(dense: list[Scored], lexical: list[Scored], highest: float, hybrid: Hybrid) -> list[Ranked]:
    cosines = {each.row: (each.score, rank) for rank, each in enumerate(dense, start=1)}
    bm25s = {each.row: (each.score, rank) for rank, each in enumerate(lexical, start=1)}
    weights = [hybrid.meaning, hybrid.words]
    if hybrid.by == "ranks":
        fused = fuse_ranks([[each.row for each in dense], [each.row for each in lexical]], weights, constant=hybrid.constant)
    else:
        scores = [{each.row: each.score for each in found} for found in (dense, lexical)]
        fused = fuse_scores(scores, weights, bounds=[COSINES, (0.0, highest)])
    return [Ranked(row, score, *cosines.get(row, (None, None)), *bm25s.get(row, (None, None))) for row, score in fused]
