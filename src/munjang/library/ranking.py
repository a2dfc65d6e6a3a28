"""Queries → rows of the store, best first: by meaning, by words, or by both fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.library.fuse import Hybrid, fuse_ranks, fuse_scores
from munjang.library.meaning import Meaning
from munjang.library.store import Scored, Store
from munjang.library.where import Condition
from munjang.types import Vectors

FUSED_AT_LEAST = 200
"""Rows of each ranking that are fused at least, so that a small k does not change who is first."""

LEAST_COSINE, LEAST_BM25 = -1.0, 0.0


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
    by_words = [store.lexical(query.words, depth, where=where) if hybrid.words else [] for query in queries]
    return [_fused(dense, lexical, hybrid) for dense, lexical in zip(by_meaning, by_words, strict=True)]


def _by_meaning(meaning: Meaning, queries: Sequence[Query], depth: int, where: Condition | None, exact: bool | None) -> list[list[Scored]]:
    return meaning.nearest(np.stack([query.vector_D for query in queries]), depth, where=where, exact=exact)


def _fused(dense: list[Scored], lexical: list[Scored], hybrid: Hybrid) -> list[Ranked]:
    cosines = {each.row: (each.score, rank) for rank, each in enumerate(dense, start=1)}
    bm25s = {each.row: (each.score, rank) for rank, each in enumerate(lexical, start=1)}
    weights = [hybrid.meaning, hybrid.words]
    if hybrid.by == "ranks":
        fused = fuse_ranks([[each.row for each in dense], [each.row for each in lexical]], weights, constant=hybrid.constant)
    else:
        scores = [{each.row: each.score for each in found} for found in (dense, lexical)]
        fused = fuse_scores(scores, weights, least=[LEAST_COSINE, LEAST_BM25])
    return [Ranked(row, score, *cosines.get(row, (None, None)), *bm25s.get(row, (None, None))) for row, score in fused]
