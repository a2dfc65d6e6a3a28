"""Seed words and labels → documents that belong to a wanted topic from the start.

Seed words: a document belongs to the group of which it holds most words, if it holds at least two of them (one, where the group has one).
Labels: a document belongs to the nearest label, if it is near enough once the collection's mean is taken off both.

Shapes: N documents, D dimensions, R reduced dimensions, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.analyze.topics.bag import Bag
from munjang.types import Ints, Vectors


def by_seed_words(bag: Bag, guides: Sequence[Sequence[str]]) -> Ints:
    """Return the group of each document, −1 where it holds too few seed words.

    >>> from munjang.analyze.topics.bag import make_bag
    >>> by_seed_words(make_bag([["선거", "투표"], ["선거"], ["세금", "비"]]), [["선거", "투표"], ["세금"]]).tolist()
    [0, -1, 1]
    """
    hits_GN = np.zeros((len(guides), len(bag)), dtype=np.int64)
    column = {word: place for place, word in enumerate(bag.vocabulary)}
    rows_E = bag.rows()
    for group, words in enumerate(guides):
        wanted = [column[word.casefold()] for word in set(words) if word.casefold() in column]
        hits_GN[group] = np.bincount(rows_E[np.isin(bag.terms, wanted)], minlength=len(bag))
    least_G = np.array([min(2, len(set(words))) for words in guides])
    hits_GN[hits_GN < least_G[:, None]] = 0
    return np.where(hits_GN.max(axis=0) > 0, hits_GN.argmax(axis=0), -1)


def by_labels(rows_NR: Vectors, labels_LR: Vectors, *, least: float) -> Ints:
    """Return the nearest label of each row, −1 where none is near enough; all unit rows of one space."""
    scores_NL = rows_NR @ labels_LR.T
    return np.where(scores_NL.max(axis=1) >= least, scores_NL.argmax(axis=1), -1)
