"""Rows → folds for cross-validation that neither lose a label nor leak.

Texts that are the same, or nearly, stay in one fold: otherwise a row would be predicted from its own copy. Labels are spread evenly. The
only rows of a label are never held out, so every fold's classifier knows every label.

Shapes: N rows, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.dedupe import find_connected, measure_overlap, split_words
from munjang.analyze.pairs import mine_pairs
from munjang.types import Ints, Vectors
from munjang.wording import brief_repr

FOLDS = 5
SMALL_FOLDS = 10
"""Folds of a small collection, where every row that is held out is missed."""
SMALL = 2_000
"""Rows up to which a collection is small."""
NEAR = 0.97
"""The cosine from which texts that share half of their words are near-duplicates."""
SHARED_WORDS = 0.5
COMPARED = 10_000
"""Rows up to which all are compared by their vectors; in larger collections only equal texts are kept together."""
NEVER = -1
"""The fold of rows that are never held out."""


@brief_repr
@dataclass(frozen=True, eq=False)
class RepeatedTexts:
    """Which rows repeat others."""

    group_N: Ints
    """Rows with the same number are the same text, or nearly."""
    repeats: int
    """Rows that have another one like them."""
    conflicts: tuple[tuple[int, ...], ...]
    """Groups of equal texts that have different labels."""


def find_repeats(texts: Sequence[str], vectors_ND: Vectors, target_NC: NDArray[np.bool_]) -> RepeatedTexts:
    """Return which rows are the same text but for white space and case, or nearly the same by their vectors."""
    first: dict[str, int] = {}
    links = []
    equal: dict[int, list[int]] = {}
    for row, text in enumerate(texts):
        one = first.setdefault(" ".join(text.casefold().split()), row)
        equal.setdefault(one, []).append(row)
        if one != row:
            links.append((one, row))
    if 1 < len(first) <= COMPARED:
        rows = np.fromiter(first.values(), dtype=np.int64)
        near = mine_pairs(vectors_ND[rows], threshold=NEAR, top=20 * len(rows))
        pairs = ((int(rows[pair.a]), int(rows[pair.b])) for pair in near.pairs)
        words = cache(lambda row: split_words(texts[row]))
        links += [pair for pair in pairs if measure_overlap(words(pair[0]), words(pair[1])) >= SHARED_WORDS]
    group_N = np.arange(len(texts), dtype=np.int64)
    groups = find_connected(links) if links else []
    for group in groups:
        group_N[list(group)] = group[0]
    conflicts = tuple(tuple(rows) for rows in equal.values() if len(rows) > 1 and len({target_NC[row].tobytes() for row in rows}) > 1)
    return RepeatedTexts(group_N, sum(len(group) for group in groups), conflicts)


def make_folds(target_NC: NDArray[np.bool_], group_N: Ints, *, seed: int) -> Ints:
    """Return each row's fold, from 0, or NEVER."""
    rows = len(target_NC)
    random = np.random.default_rng(seed)
    groups, place_N = np.unique(group_N, return_inverse=True)
    first_G = np.full(len(groups), -1, dtype=np.int64)
    kind_N = _number_label_sets(target_NC)
    for row in range(rows - 1, -1, -1):
        first_G[place_N[row]] = row
    kind_G = kind_N[first_G]
    folds = SMALL_FOLDS if rows <= SMALL else FOLDS
    most = int(np.bincount(kind_G).max(initial=0))
    folds = max(2, min(folds, most))
    fold_G = np.zeros(len(groups), dtype=np.int64)
    next_fold = 0
    for kind in range(int(kind_G.max(initial=-1)) + 1):
        members = np.flatnonzero(kind_G == kind)
        random.shuffle(members)
        fold_G[members] = (next_fold + np.arange(len(members))) % folds
        next_fold = (next_fold + len(members)) % folds
    fold_N: Ints = fold_G[place_N]
    for label in range(target_NC.shape[1]):
        held = fold_N[target_NC[:, label]]
        if len(held) and (held == held[0]).all():  # its rows are all in one fold, or never held out
            fold_N[target_NC[:, label]] = NEVER
    return fold_N


def _number_label_sets(target_NC: NDArray[np.bool_]) -> Ints:
    """Return a number for each different set of labels; rows with one label have as many as there are labels."""
    numbers: dict[bytes, int] = {}
    packed_NB = np.packbits(target_NC, axis=1)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed_NB], dtype=np.int64)
