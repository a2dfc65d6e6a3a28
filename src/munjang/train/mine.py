"""Hard negatives: for each (query, positive) pair, texts of a corpus that look like answers and are none.

In: pairs, a corpus and an Encoder. Out: triplets. Only the k best candidates of each query are held, found block by block. A candidate
that is near the positive's own score is probably right too; margins keep it out: absolute (positive − candidate ≥ margin) and
relative (candidate ≤ positive × (1 − margin)). Needs no torch: any Encoder will do.

Shapes: N pairs, M texts of the corpus, K candidates of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from munjang.data.files import write_rows
from munjang.data.rows import TextPair, Triplet
from munjang.errors import InputError, UsageError
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, check_encoder
from munjang.vectors.similarity import similarity_pairwise
from munjang.vectors.topk import top_k


@dataclass(frozen=True)
class MineOptions:
    """Which candidates are taken. Ranks are counted from 0, the positives of a query left out; `last_rank` is not taken any more."""

    negatives: int = 1
    first_rank: int = 0
    last_rank: int = 50
    absolute_margin: float | None = None
    relative_margin: float | None = None
    max_score: float | None = None
    min_score: float | None = None
    sampling: Literal["top", "random"] = "top"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.negatives < 1:
            raise UsageError(f"negatives is {self.negatives}, expected 1 or more")
        if not 0 <= self.first_rank < self.last_rank:
            raise UsageError(f"ranks {self.first_rank} to {self.last_rank}, expected a lower and a higher one")


@dataclass(frozen=True)
class MinedTriplets:
    """Triplets, and how many pairs found too few negatives."""

    triplets: tuple[Triplet, ...]
    pairs: int
    short: int
    """Pairs with fewer negatives than asked for."""
    empty: int
    """Pairs with none at all."""
    mean_positive: float
    mean_negative: float


def mine_negatives(
    encoder: Encoder, pairs: Sequence[TextPair], corpus: Iterable[str] | None = None, *, options: MineOptions | None = None
) -> MinedTriplets:
    """Return triplets for pairs; without a corpus the other pairs' positives are the candidates."""
    check_encoder(encoder)
    chosen = options or MineOptions()
    if not pairs:
        raise InputError("no pairs to mine for")
    texts = list(dict.fromkeys((pair.b for pair in pairs) if corpus is None else validate_texts(corpus, name="corpus")))
    if not texts:
        raise InputError("the corpus is empty, expected texts to choose negatives from")
    right: dict[str, set[str]] = {}
    for pair in pairs:
        right.setdefault(pair.a, {pair.a}).add(pair.b)
    queries = list(right)
    vectors_MD, queries_ND = encoder.encode(texts), encoder.encode(queries)
    own = similarity_pairwise(encoder.encode([pair.a for pair in pairs]), encoder.encode([pair.b for pair in pairs]), metric="cosine")
    # a query's own positives may stand among its best, so ask for that many more
    depth = min(len(texts), chosen.last_rank + max(len(answers) for answers in right.values()))
    scores_NK, found_NK = top_k(queries_ND, vectors_MD, k=depth, metric="cosine")
    places = {query: row for row, query in enumerate(queries)}
    random = np.random.default_rng(chosen.seed)
    triplets: list[Triplet] = []
    taken: list[float] = []
    short = empty = 0
    for pair, positive in zip(pairs, own.tolist(), strict=True):
        row = places[pair.a]
        ranked = [
            (texts[at], float(score)) for at, score in zip(found_NK[row], scores_NK[row], strict=True) if texts[at] not in right[pair.a]
        ]
        fitting = [item for item in ranked[chosen.first_rank : chosen.last_rank] if _fits(item[1], positive, chosen)]
        if chosen.sampling == "random" and len(fitting) > chosen.negatives:
            fitting = [fitting[at] for at in sorted(random.permutation(len(fitting))[: chosen.negatives].tolist())]
        kept = fitting[: chosen.negatives]
        short += len(kept) < chosen.negatives
        empty += not kept
        taken += [score for _, score in kept]
        triplets += [Triplet(pair.a, pair.b, text, pair.where) for text, _ in kept]
    return MinedTriplets(tuple(triplets), len(pairs), short, empty, float(np.mean(own)), float(np.mean(taken)) if taken else float("nan"))


def write_triplets(triplets: Iterable[Triplet], path: Path | str) -> int:
    """Write triplets as JSON lines, TSV or CSV by the file's suffix; return how many."""
    rows = ((triplet.anchor, triplet.positive, triplet.negative) for triplet in triplets)
    return write_rows(Path(path), ("anchor", "positive", "negative"), rows)


def _fits(score: float, positive: float, options: MineOptions) -> bool:
    if options.absolute_margin is not None and score > positive - options.absolute_margin:
        return False
    # a share of a negative score would be above it, so the distance is taken from its size
    if options.relative_margin is not None and score > positive - abs(positive) * options.relative_margin:
        return False
    if options.max_score is not None and score > options.max_score:
        return False
    return options.min_score is None or score >= options.min_score
