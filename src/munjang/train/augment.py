"""Augmented SBERT: pairs sampled from texts, labelled by a cross-encoder, for a sentence encoder to learn from beside people's labels.

In: texts, an Encoder for semantic neighbours, a Scorer for labels (or the Encoder's own cosine, the other way round, to teach a
cross-encoder). Out: silver pairs with scores 0 … 1, and a file that recipes read. Pairs by chance would nearly all be unlike; neighbours
by words (BM25) and by meaning are worth a label. Needs no torch.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from munjang.errors import InputError, UsageError
from munjang.evaluate.rerank import relevance
from munjang.evaluate.similarities import pair_similarities
from munjang.text.validate_texts import validate_texts
from munjang.train.bm25 import Bm25
from munjang.train.durable import write_file
from munjang.types import Encoder, Scorer, check_encoder
from munjang.vectors.topk import top_k

Strategy: TypeAlias = Literal["bm25", "semantic", "both"]
Labelling: TypeAlias = Literal["model", "sigmoid", "clip"]
"""model: the score as it is, which must be 0 … 1. sigmoid: its sigmoid. clip: cut at 0 and 1."""

HEADER = ("sentence1", "sentence2", "score")
FORMATS = (".csv", ".tsv", ".jsonl")
_MOST_KNOWN = 50


@dataclass(frozen=True)
class SampleOptions:
    """How pairs are sampled: for each text its `per_text` nearest by each strategy; `limit` keeps that many of all, drawn with `seed`."""

    per_text: int = 3
    strategy: Strategy = "both"
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.per_text < 1 or (self.limit is not None and self.limit < 1):
            raise UsageError("per_text and limit must be 1 or more")


@dataclass(frozen=True)
class SilverPair:
    """Two texts and what the cross-encoder thinks of them."""

    a: str
    b: str
    score: float


def sample_pairs(
    texts: Sequence[str], *, encoder: Encoder | None = None, known: Sequence[tuple[str, str]] = (), options: SampleOptions | None = None
) -> list[tuple[str, str]]:
    """Return pairs of different texts that are near each other, each pair once whichever way round, none of them `known` already."""
    if encoder is not None:
        check_encoder(encoder)
    chosen = options or SampleOptions()
    unique = list(dict.fromkeys(validate_texts(texts)))
    if len(unique) < 2:
        raise InputError(f"{len(unique)} different text, expected two or more to make pairs of")
    if chosen.strategy != "bm25" and encoder is None:
        raise UsageError(f"strategy is {chosen.strategy!r}, which needs a sentence encoder\n  name one, or use bm25")
    old = {frozenset(pair) for pair in known}
    partners = Counter(text for pair in old for text in pair)
    # known partners may stand among the nearest, so ask for that many more
    depth = min(len(unique) - 1, chosen.per_text + min(max(partners.values(), default=0), _MOST_KNOWN))
    made: dict[frozenset[str], tuple[str, str]] = {}
    for neighbours in _neighbours(unique, encoder, chosen.strategy, depth):
        for text, found in zip(unique, neighbours, strict=True):
            fresh = [unique[at] for at in found if frozenset((text, unique[at])) not in old]
            for other in fresh[: chosen.per_text]:
                made.setdefault(frozenset((text, other)), (text, other))
    if not made:
        raise InputError(
            "no new pairs found: no two texts share a word, or all neighbours are known pairs\n  raise per_text, or use semantic"
        )
    pairs = list(made.values())
    if chosen.limit is not None and chosen.limit < len(pairs):
        kept = sorted(random.Random(chosen.seed).sample(range(len(pairs)), chosen.limit))  # noqa: S311
        pairs = [pairs[at] for at in kept]
    return pairs


def label_pairs(scorer: Scorer, pairs: Sequence[tuple[str, str]], *, labelling: Labelling = "model") -> list[SilverPair]:
    """Return the pairs with a cross-encoder's scores, 0 … 1; a model with several labels is refused, and so are scores out of range."""
    scores = relevance(scorer, list(pairs))
    if labelling == "sigmoid":
        scores = 0.5 * (1 + np.tanh(0.5 * scores))
    elif labelling == "clip":
        scores = scores.clip(0.0, 1.0)
    elif len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        raise UsageError(
            f"the cross-encoder's scores go from {scores.min():.2f} to {scores.max():.2f}, expected 0 … 1\n"
            "  use sigmoid where it gives logits, or clip where it was trained on 0 … 1"
        )
    return [SilverPair(a, b, round(score, 6)) for (a, b), score in zip(pairs, scores.tolist(), strict=True)]


def label_by_cosine(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> list[SilverPair]:
    """Return the pairs with a sentence encoder's cosine, cut to 0 … 1: a first lesson for a new cross-encoder."""
    check_encoder(encoder)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    rows = {text: row for row, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    scores = pair_similarities(vectors[[rows[a] for a, _ in pairs]], vectors[[rows[b] for _, b in pairs]]).clip(0.0, 1.0)
    return [SilverPair(a, b, round(score, 6)) for (a, b), score in zip(pairs, scores.tolist(), strict=True)]


def write_silver(silver: Sequence[SilverPair], path: Path | str) -> int:
    """Write silver pairs as CSV, TSV or JSON lines by the file's suffix, whole or not at all; return how many."""
    path = Path(path)
    check_format(path)
    write_file(path, lambda draft: _write(silver, draft, path.suffix))
    return len(silver)


def check_format(path: Path) -> None:
    """Refuse a file whose suffix is no format that pairs are written in."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{path.name}: no known format, expected {', '.join(FORMATS)}")


def _neighbours(texts: Sequence[str], encoder: Encoder | None, strategy: Strategy, depth: int) -> Iterator[Sequence[Sequence[int]]]:
    """Yield, for each strategy, every text's nearest others by index."""
    if strategy != "semantic":
        index = Bm25(texts)
        yield [index.best(text, k=depth, exclude=row) for row, text in enumerate(texts)]
    if strategy != "bm25" and encoder is not None:
        vectors = encoder.encode(texts)
        yield top_k(vectors, vectors, k=depth, exclude_self=True)[1].tolist()


def _write(silver: Sequence[SilverPair], path: Path, suffix: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream) if suffix == ".csv" else None
        if rows is not None:
            rows.writerow(HEADER)
        elif suffix == ".tsv":
            stream.write("\t".join(HEADER) + "\n")
        for pair in silver:
            if rows is not None:
                rows.writerow((pair.a, pair.b, pair.score))
            elif suffix == ".tsv":
                # a tab or line break inside a text would make another column or row of it
                stream.write("\t".join((" ".join(pair.a.split()), " ".join(pair.b.split()), str(pair.score))) + "\n")
            else:
                stream.write(json.dumps(dict(zip(HEADER, (pair.a, pair.b, pair.score), strict=True)), ensure_ascii=False) + "\n")
