"""Topic words and a bag of words → how well the words hang together (NPMI) and how different the topics are (diversity).

NPMI is taken over documents: log(p(a, b) / p(a) p(b)) / −log p(a, b), the mean over all pairs of a topic's words; −1 for words that never
meet, 1 for words that only come together. Diversity is the share of different words among all topics' words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.analyze.topics.bag import Bag
from munjang.types import Floats


def npmi(topics: Sequence[Sequence[str]], bag: Bag) -> list[float]:
    """Return the coherence of each topic; a topic of fewer than two known words has 0."""
    place = {word: number for number, word in enumerate(bag.vocabulary)}
    words = sorted({word for topic in topics for word in topic if word in place})
    if not words or not len(bag):
        return [0.0] * len(topics)
    together_WW, column = _meetings(bag, [place[word] for word in words]), {word: number for number, word in enumerate(words)}
    return [_mean_npmi(together_WW, [column[word] for word in topic if word in column], len(bag)) for topic in topics]


def diversity(topics: Sequence[Sequence[str]]) -> float:
    """Return the share of different words among all words of all topics.

    >>> diversity([["비", "눈"], ["비", "해"]])
    0.75
    """
    words = [word for topic in topics for word in topic]
    return len(set(words)) / len(words) if words else 0.0


def _meetings(bag: Bag, terms: list[int]) -> Floats:
    """Return in how many documents each pair of words meets, (W, W); its diagonal is in how many a word stands."""
    place_V = np.full(len(bag.vocabulary), -1)
    place_V[terms] = np.arange(len(terms))
    at_E, rows_E = place_V[bag.terms], bag.rows()
    held = at_E >= 0
    at_E, rows_E = at_E[held], rows_E[held]
    together_WW = np.zeros((len(terms), len(terms)))
    step = 2_048  # documents held as a dense block
    for start in range(0, len(bag), step):
        low, high = np.searchsorted(rows_E, [start, start + step])
        block_WM = np.zeros((len(terms), min(step, len(bag) - start)), dtype=np.float32)
        block_WM[at_E[low:high], rows_E[low:high] - start] = 1
        together_WW += block_WM @ block_WM.T
    return together_WW


def _mean_npmi(together_WW: Floats, words: list[int], documents: int) -> float:
    scores = []
    for place, a in enumerate(words):
        for b in words[:place]:
            both = together_WW[a, b] / documents
            if both == 0:
                scores.append(-1.0)
            elif both == 1:
                scores.append(1.0)
            else:
                scores.append(np.log(both * documents**2 / (together_WW[a, a] * together_WW[b, b])) / -np.log(both))
    return float(np.mean(scores)) if scores else 0.0
