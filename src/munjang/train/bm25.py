"""BM25 over a list of texts, for sampling pairs that share words: the texts in, a query's best texts out.

Pieces are words in lower case; words of Korean, Chinese or Japanese letters are cut into pairs of letters, so that endings and particles do
not keep one word from another. What a piece of the query adds to a text's score is
ln(1 + (N − n + ½) / (n + ½)) · f (k1 + 1) / (f + k1 (1 − b + b l / m)): n texts of N have the piece, f times in this one; l is its length
in pieces, m the mean length. A library with an index on disk is another room's.

Shapes: N texts, P postings (a piece in a text), V pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_LETTER_PAIRS = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff]")


def pieces_of(text: str) -> list[str]:
    """Return the pieces that BM25 counts.

    >>> pieces_of("The rain 비가와요")
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
        counted = [Counter(pieces_of(text)) for text in texts]
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
        asked = Counter(piece for piece in pieces_of(query) if piece in self._places)
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
