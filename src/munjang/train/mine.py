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
from typing import Annotated, Literal

import numpy as np

from munjang.data.files import write_rows
from munjang.data.rows import TextPair, Triplet
from munjang.errors import InputError, UsageError
from munjang.options import Option, Seed, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, check_encoder
from munjang.vectors.similarity import similarity_pairwise
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr


@brief_repr
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
    encoder: Encoder,
    pairs: Sequence[TextPair],
    corpus: Iterable[str] | None = None,
    *,
    negatives: Annotated[int, Option("Negatives for each pair.", min=1)] = 1,
    first_rank: Annotated[int, Option("Skip this many of the closest texts.", min=0)] = 0,
    last_rank: Annotated[int, Option("The last rank to consider.", min=1)] = 50,
    absolute_margin: Annotated[float | None, Option("Minimum difference between the positive's and a negative's score.")] = None,
    relative_margin: Annotated[float | None, Option("The same, relative to the positive's score, such as 0.05.")] = None,
    max_score: Annotated[float | None, Option("Maximum score of a negative.")] = None,
    min_score: Annotated[float | None, Option("Minimum score of a negative.")] = None,
    sampling: Annotated[Literal["top", "random"], Option("Take the closest, or any within the ranks.")] = "top",
    seed: Seed = 0,
) -> MinedTriplets:
    """Return triplets for pairs; without a corpus the other pairs' positives are the candidates.

    Ranks are counted from 0, the positives of a query left out; `last_rank` is not taken any more.
    """
    check_options(mine_negatives, locals())
    check_encoder(encoder)
    if first_rank >= last_rank:
        raise UsageError(f"ranks {first_rank} to {last_rank}, expected a lower and a higher one")
    limits = _Limits(absolute_margin, relative_margin, max_score, min_score)
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
    depth = min(len(texts), last_rank + max(len(answers) for answers in right.values()))
    scores_NK, found_NK = top_k(queries_ND, vectors_MD, k=depth, metric="cosine")
    places = {query: row for row, query in enumerate(queries)}
    random = np.random.default_rng(seed)
    triplets: list[Triplet] = []
    taken: list[float] = []
    short = empty = 0
    for pair, positive in zip(pairs, own.tolist(), strict=True):
        row = places[pair.a]
        ranked = [
            (texts[at], float(score)) for at, score in zip(found_NK[row], scores_NK[row], strict=True) if texts[at] not in right[pair.a]
        ]
        fitting = [item for item in ranked[first_rank:last_rank] if limits.allow(item[1], positive)]
        if sampling == "random" and len(fitting) > negatives:
            fitting = [fitting[at] for at in sorted(random.permutation(len(fitting))[:negatives].tolist())]
        kept = fitting[:negatives]
        short += len(kept) < negatives
        empty += not kept
        taken += [score for _, score in kept]
        triplets += [Triplet(pair.a, pair.b, text, pair.where) for text, _ in kept]
    return MinedTriplets(tuple(triplets), len(pairs), short, empty, float(np.mean(own)), float(np.mean(taken)) if taken else float("nan"))


def write_triplets(triplets: Iterable[Triplet], path: Path | str) -> int:
    """Write triplets as JSON lines, TSV or CSV by the file's suffix; return how many."""
    rows = ((triplet.anchor, triplet.positive, triplet.negative) for triplet in triplets)
    return write_rows(Path(path), ("anchor", "positive", "negative"), rows)


@dataclass(frozen=True)
class _Limits:
    absolute_margin: float | None
    relative_margin: float | None
    max_score: float | None
    min_score: float | None

    def allow(self, score: float, positive: float) -> bool:
        """Say whether a candidate's score lets it be a negative."""
        if self.absolute_margin is not None and score > positive - self.absolute_margin:
            return False
        # a share of a negative score would be above it, so the distance is taken from its size
        if self.relative_margin is not None and score > positive - abs(positive) * self.relative_margin:
            return False
        if self.max_score is not None and score > self.max_score:
            return False
        return self.min_score is None or score >= self.min_score
