"""Weighted words of one topic → the few that describe it, each adding something (maximal marginal relevance).

Two words are alike when they stand in the same documents of the topic. Diversity 0 takes the strongest words; more of it passes over a word
that only repeats one already chosen. Equal weights go by the word, so the answer never depends on an order in memory.

Shapes: V words, C candidates, M documents of the topic.
"""

from __future__ import annotations

import numpy as np

from munjang.analyze.topics.bag import Bag
from munjang.types import Floats

CANDIDATES = 3
"""Candidates per word that is wanted."""


def choose_words(weights_V: Floats, members: Bag, *, count: int, diversity: float) -> list[tuple[str, float]]:
    """Return up to `count` words with their weights, strongest first; `members` are the topic's documents."""
    candidates = strongest(weights_V, count * CANDIDATES if diversity > 0 else count)
    if diversity > 0 and len(candidates) > count:
        chosen = _marginal(weights_V[candidates], _together(members, candidates), count, diversity)
        candidates = [candidates[place] for place in chosen]
    found = [(members.vocabulary[term], float(weights_V[term])) for term in candidates]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def strongest(weights_V: Floats, count: int) -> list[int]:
    """Return the columns of the largest weights above zero, equal weights by column.

    >>> strongest(np.array([0.0, 2.0, 1.0, 2.0]), 3)
    [1, 3, 2]
    """
    order = np.argsort(-weights_V, kind="stable")[:count]
    return [int(term) for term in order if weights_V[term] > 0]


def _together(members: Bag, candidates: list[int]) -> Floats:
    """Return the cosine of the candidates' document sets, (C, C)."""
    place_V = np.full(len(members.vocabulary), -1)
    place_V[candidates] = np.arange(len(candidates))
    at_E = place_V[members.terms]
    present_CM = np.zeros((len(candidates), len(members)))
    present_CM[at_E[at_E >= 0], members.rows()[at_E >= 0]] = 1
    length_C = np.sqrt(np.maximum(present_CM.sum(axis=1), 1))
    together_CC: Floats = (present_CM @ present_CM.T) / length_C[:, None] / length_C
    return together_CC


def _marginal(weights_C: Floats, together_CC: Floats, count: int, diversity: float) -> list[int]:
    relevance_C = weights_C / weights_C.max()
    chosen = [0]
    while len(chosen) < count:
        score_C = (1 - diversity) * relevance_C - diversity * together_CC[:, chosen].max(axis=1)
        score_C[chosen] = -np.inf
        chosen.append(int(np.argmax(score_C)))
    return chosen
