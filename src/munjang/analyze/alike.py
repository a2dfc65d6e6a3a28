"""Texts or vectors → which rows are the very same, which rows hang together, and how many words two texts share.

Small things that both pair mining and removal of near-duplicates need. Similarity of meaning is left to `pairs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from munjang.types import Vectors

_WORD = re.compile(r"\w+")


def same_rows(texts: Sequence[str] | None, vectors_ND: Vectors) -> list[tuple[int, ...]]:
    """Return the rows that are equal to one another, as texts if there are any, else bit for bit as vectors; first rows in order.

    >>> same_rows(["a", "b", "a", "a"], np.zeros((4, 1), dtype=np.float32))
    [(0, 2, 3), (1,)]
    """
    rows: dict[str | bytes, list[int]] = {}
    keys: Iterable[str | bytes] = texts if texts is not None else (row.tobytes() for row in np.ascontiguousarray(vectors_ND))
    for number, key in enumerate(keys):
        rows.setdefault(key, []).append(number)
    return [tuple(group) for group in rows.values()]


def connected(links: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups that the links tie together, the largest first, then by first member; members ascend.

    >>> connected([(3, 4), (0, 1), (1, 2)])
    [(0, 1, 2), (3, 4)]
    """
    parent: dict[int, int] = {}

    def root(member: int) -> int:
        parent.setdefault(member, member)
        while parent[member] != member:
            parent[member] = member = parent[parent[member]]
        return member

    for a, b in links:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    groups: dict[int, list[int]] = {}
    for member in sorted(parent):
        groups.setdefault(root(member), []).append(member)
    return sorted((tuple(group) for group in groups.values()), key=lambda group: (-len(group), group[0]))


def words_of(text: str) -> frozenset[str]:
    """Return the text's words without regard to case.

    >>> sorted(words_of("The rain, the RIVER"))
    ['rain', 'river', 'the']
    """
    return frozenset(_WORD.findall(text.casefold()))


def word_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of all words of both texts that stand in both (Jaccard); two texts without words share all of them.

    >>> word_overlap(words_of("the cat"), words_of("the dog"))
    0.3333333333333333
    """
    return len(a & b) / len(a | b) if a or b else 1.0
