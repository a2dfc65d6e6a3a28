"""Augmented SBERT: pairs sampled from texts, labelled by a cross-encoder, for a sentence encoder to learn from beside people's labels.

In: texts, an Encoder for semantic neighbours, a Scorer for labels (or the Encoder's own cosine, the other way round, to teach a
cross-encoder). Out: silver pairs with scores 0 … 1, and a file that recipes read. Pairs by chance would nearly all be unlike; neighbours
by words (BM25) and by meaning are worth a label. Needs no torch.

`Bm25` counts words in lower case; words of Korean, Chinese or Japanese letters are cut into pairs of letters, so that endings and
particles do not keep one word from another. What a piece of the query adds to a text's score is ln(1 + (N − n + ½) / (n + ½)) · f (k1 + 1)
/ (f + k1 (1 − b + b l / m)): n texts of N have the piece, f times in this one; l is its length in pieces, m the mean length.

Shapes: N texts, P postings (a piece in a text), V pieces.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.data.files import write_rows
from munjang.errors import InputError, UsageError
from munjang.evaluate.metrics import pair_similarities
from munjang.evaluate.rerank import score_relevance
from munjang.options import Option, Seed, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Scorer, check_encoder
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr

_WORD = re.compile(r"\w+")
_LETTER_PAIRS = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff]")


def split_pieces(text: str) -> list[str]:
    """Return the pieces that BM25 counts.

    >>> split_pieces("The rain 비가와요")
    ['the', 'rain', '비가', '가와', '와요']
    """
    made: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFC", text).casefold()):
        if len(word) > 2 and _LETTER_PAIRS.search(word):
            made += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            made.append(word)
    return made


class Bm25:
    """The texts' postings, with every weight computed once."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        counted = [Counter(split_pieces(text)) for text in texts]
        self.size = len(counted)
        self._places: dict[str, int] = {}
        pieces_P = np.array([self._places.setdefault(piece, len(self._places)) for count in counted for piece in count], np.int64)
        rows_P = np.repeat(np.arange(self.size), [len(count) for count in counted])
        often_P = np.array([often for count in counted for often in count.values()], np.float64)
        lengths_N = np.array([count.total() for count in counted], np.float64)
        texts_V = np.bincount(pieces_P, minlength=len(self._places))
        rarity_V = np.log1p((self.size - texts_V + 0.5) / (texts_V + 0.5))
        # texts without a piece have no postings, so their mean of 0 divides nothing
        norms_N = k1 * (1 - b + b * lengths_N / (lengths_N.mean() if lengths_N.any() else 1.0))
        weights_P = rarity_V[pieces_P] * often_P * (k1 + 1) / (often_P + norms_N[rows_P])
        order_P = np.argsort(pieces_P, kind="stable")
        self._rows_P, self._weights_P = rows_P[order_P], weights_P[order_P]
        self._ends_V = np.cumsum(texts_V)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every text for a query; a piece that the query has twice counts twice."""
        asked = Counter(piece for piece in split_pieces(query) if piece in self._places)
        made_N = np.zeros(self.size)
        for piece, often in asked.items():
            place = self._places[piece]
            part = slice(self._ends_V[place - 1] if place else 0, self._ends_V[place])
            # a text has a piece once among the postings, so no place is written twice
            made_N[self._rows_P[part]] += often * self._weights_P[part]
        return made_N

    def best(self, query: str, *, k: int, exclude: int | None = None) -> list[int]:
        """Return up to k texts that share a piece with the query, best first, lower index first on ties; `exclude` is left out."""
        scores_N = self.scores(query)
        if exclude is not None:
            scores_N[exclude] = 0.0
        found = np.flatnonzero(scores_N > 0)
        if len(found) > k:
            least = np.partition(scores_N[found], len(found) - k)[len(found) - k]
            found = found[scores_N[found] >= least]
        best: list[int] = found[np.argsort(-scores_N[found], kind="stable")][:k].tolist()
        return best


Strategy: TypeAlias = Literal["bm25", "semantic", "both"]
Labelling: TypeAlias = Literal["model", "sigmoid", "clip"]
"""model: the score as it is, which must be 0 … 1. sigmoid: its sigmoid. clip: cut at 0 and 1."""

LabellingOption: TypeAlias = Annotated[Labelling, Option("Use the score as it is, its sigmoid, or clip it to 0 … 1.", flags=("--score",))]

HEADER = ("sentence1", "sentence2", "score")
_MOST_KNOWN = 50


@brief_repr
@dataclass(frozen=True)
class SilverPair:
    """Two texts and what the cross-encoder thinks of them."""

    a: str
    b: str
    score: float


def sample_pairs(
    texts: Sequence[str],
    *,
    encoder: Encoder | None = None,
    known: Sequence[tuple[str, str]] = (),
    per_text: Annotated[int, Option("Neighbours of each text, by each strategy.", min=1)] = 3,
    strategy: Annotated[Strategy, Option("Neighbours by shared words, by meaning, or by both.")] = "both",
    limit: Annotated[int | None, Option("Keep at most this many pairs, drawn at random.", min=1)] = None,
    seed: Seed = 0,
) -> list[tuple[str, str]]:
    """Return pairs of different texts that are near each other, each pair once whichever way round, none of them `known` already.

    Near are the `per_text` nearest of each text by each strategy; `limit` keeps that many of all, drawn with `seed`.
    """
    check_options(sample_pairs, locals())
    if encoder is not None:
        check_encoder(encoder)
    unique = list(dict.fromkeys(validate_texts(texts)))
    if len(unique) < 2:
        raise InputError(f"{len(unique)} different text, expected two or more to make pairs of")
    if strategy != "bm25" and encoder is None:
        raise UsageError(f"strategy is {strategy!r}, which needs a sentence encoder\n  name one, or use bm25")
    old = {frozenset(pair) for pair in known}
    partners = Counter(text for pair in old for text in pair)
    # known partners may stand among the nearest, so ask for that many more
    depth = min(len(unique) - 1, per_text + min(max(partners.values(), default=0), _MOST_KNOWN))
    made: dict[frozenset[str], tuple[str, str]] = {}
    for neighbours in _find_neighbours(unique, encoder, strategy, depth):
        for text, found in zip(unique, neighbours, strict=True):
            fresh = [unique[at] for at in found if frozenset((text, unique[at])) not in old]
            for other in fresh[:per_text]:
                made.setdefault(frozenset((text, other)), (text, other))
    if not made:
        raise InputError(
            "no new pairs found: no two texts share a word, or all neighbours are known pairs\n  raise per_text, or use semantic"
        )
    pairs = list(made.values())
    if limit is not None and limit < len(pairs):
        kept = sorted(random.Random(seed).sample(range(len(pairs)), limit))  # noqa: S311
        pairs = [pairs[at] for at in kept]
    return pairs


def label_pairs(scorer: Scorer, pairs: Sequence[tuple[str, str]], *, labelling: LabellingOption = "model") -> list[SilverPair]:
    """Return the pairs with a cross-encoder's scores, 0 … 1; a model with several labels is refused, and so are scores out of range."""
    scores = score_relevance(scorer, list(pairs))
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
    return write_rows(Path(path), HEADER, ((pair.a, pair.b, pair.score) for pair in silver))


def _find_neighbours(texts: Sequence[str], encoder: Encoder | None, strategy: Strategy, depth: int) -> Iterator[Sequence[Sequence[int]]]:
    """Yield, for each strategy, every text's nearest others by index."""
    if strategy != "semantic":
        index = Bm25(texts)
        yield [index.best(text, k=depth, exclude=row) for row, text in enumerate(texts)]
    if strategy != "bm25" and encoder is not None:
        vectors = encoder.encode(texts)
        yield top_k(vectors, vectors, k=depth, exclude_self=True)[1].tolist()
