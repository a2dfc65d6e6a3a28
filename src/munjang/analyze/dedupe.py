"""One collection → the rows to keep so that no two of them say nearly the same.

Rows are walked in order: a row goes if it is at least as close as the threshold to a row that stays, and stays otherwise. So the first of
a kind stays, every row that goes has its reason among those that stay, and no chain of small steps drags a different text away.

Shapes: N rows of a block, K rows kept so far, D dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.text.validate_texts import validate_texts
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import prepare_rows, to_rows
from munjang.wording import brief_repr

_WORD = re.compile(r"\w+")


def find_same_rows(texts: Sequence[str] | None, vectors_ND: Vectors) -> list[tuple[int, ...]]:
    """Return the rows that are equal to one another, as texts if there are any, else bit for bit as vectors; first rows in order.

    >>> find_same_rows(["a", "b", "a", "a"], np.zeros((4, 1), dtype=np.float32))
    [(0, 2, 3), (1,)]
    """
    rows: dict[str | bytes, list[int]] = {}
    keys: Iterable[str | bytes] = texts if texts is not None else (row.tobytes() for row in np.ascontiguousarray(vectors_ND))
    for number, key in enumerate(keys):
        rows.setdefault(key, []).append(number)
    return [tuple(group) for group in rows.values()]


def find_connected(links: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups that the links tie together, the largest first, then by first member; members ascend.

    >>> find_connected([(3, 4), (0, 1), (1, 2)])
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


def split_words(text: str) -> frozenset[str]:
    """Return the text's words without regard to case.

    >>> sorted(split_words("The rain, the RIVER"))
    ['rain', 'river', 'the']
    """
    return frozenset(_WORD.findall(text.casefold()))


def measure_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of all words of both texts that stand in both (Jaccard); two texts without words share all of them.

    >>> measure_overlap(split_words("the cat"), split_words("the dog"))
    0.3333333333333333
    """
    return len(a & b) / len(a | b) if a or b else 1.0


BLOCK = 1024
"""Rows that are looked at together."""


@dataclass(frozen=True)
class Dropped:
    """A row that goes, the row that stays in its stead, and their cosine."""

    row: int
    kept: int
    score: float


@brief_repr
@dataclass(frozen=True)
class Deduped(Table):
    """What stays and what goes, both in order."""

    columns: ClassVar[tuple[str, ...]] = ("kept", "same_as", "score")

    kept: tuple[int, ...]
    dropped: tuple[Dropped, ...]

    def to_rows(self) -> list[Row]:
        """Return for each row whether it is kept, and the row that stands for it, which is itself where it is kept."""
        rows: dict[int, Row] = {row: {"kept": True, "same_as": row, "score": 1.0} for row in self.kept}
        rows |= {each.row: {"kept": False, "same_as": each.kept, "score": each.score} for each in self.dropped}
        return [rows[row] for row in sorted(rows)]


def dedupe(
    vectors: ArrayLike,
    *,
    texts: Sequence[str] | None = None,
    threshold: Annotated[float, Option("Minimum cosine of near-duplicates.", min=-1)] = 0.95,
    block: int = BLOCK,
) -> Deduped:
    """Return which rows to keep: the first of each kind.

    Equal texts are of one kind whatever the threshold; without texts, equal vectors are.

    >>> dedupe([[1, 0], [0, 1], [1, 0.01]]).kept
    (0, 1)
    """
    check_options(dedupe, locals())
    rows_ND = to_rows(vectors, "vectors")
    texts = None if texts is None else validate_texts(texts)
    if texts is not None and len(texts) != len(rows_ND):
        raise UsageError(f"texts: found {len(texts):,} for {len(rows_ND):,} vectors; expected one for each")
    if block < 1:
        raise UsageError(f"block is {block}; expected at least 1 row")
    same = find_same_rows(texts, rows_ND)
    first = np.array([group[0] for group in same], dtype=np.int64)
    walk = _Walk(prepare_rows(rows_ND[first], "cosine"), np.float32(threshold))
    for start in range(0, len(first), block):
        walk.step(slice(start, start + block))
    instead, score = walk.instead, walk.score
    dropped = []
    for place, group in enumerate(same):
        stays = int(first[instead[place]])
        dropped += [Dropped(row, stays, min(1.0, float(score[place]))) for row in group if row != stays]
    return Deduped(tuple(first[walk.kept].tolist()), tuple(sorted(dropped, key=lambda each: each.row)))


class _Walk:
    """The walk through distinct rows: which stay, and for every row the one that stays in its stead, itself if it does."""

    def __init__(self, unit_ND: Vectors, threshold: np.float32) -> None:
        self.unit_ND, self.threshold = unit_ND, threshold
        self.instead: Ints = np.arange(len(unit_ND))
        self.score: Vectors = np.ones(len(unit_ND), dtype=np.float32)
        self.kept: Ints = np.empty(0, dtype=np.int64)

    def step(self, rows: slice) -> None:
        """Decide about the next rows."""
        part_ND = self.unit_ND[rows]
        where_N, best_N = self._nearest_kept(part_ND)
        gone_N = best_N >= self.threshold
        numbers_N = np.arange(rows.start, rows.start + len(part_ND))
        self.instead[numbers_N[gone_N]] = where_N[gone_N]
        self.score[numbers_N[gone_N]] = best_N[gone_N]
        self._among_themselves(numbers_N[~gone_N])

    def _nearest_kept(self, part_ND: Vectors) -> tuple[Ints, Vectors]:
        where_N = np.zeros(len(part_ND), dtype=np.int64)
        best_N = np.full(len(part_ND), -np.inf, dtype=np.float32)
        for at in range(0, len(self.kept), BLOCK):
            some_K = self.kept[at : at + BLOCK]
            scores_NK = part_ND @ self.unit_ND[some_K].T
            place_N = scores_NK.argmax(axis=1)
            score_N = scores_NK[np.arange(len(part_ND)), place_N]
            better_N = score_N > best_N
            where_N[better_N], best_N[better_N] = some_K[place_N[better_N]], score_N[better_N]
        return where_N, best_N

    def _among_themselves(self, numbers_N: Ints) -> None:
        """Let rows that no earlier block speaks against be dropped by the earlier ones of their own block."""
        part_ND = self.unit_ND[numbers_N]
        close_NN = part_ND @ part_ND.T
        stays_N = np.zeros(len(numbers_N), dtype=bool)
        for place, number in enumerate(numbers_N.tolist()):
            scores = np.where(stays_N[:place], close_NN[place, :place], -np.inf)
            nearest = int(scores.argmax()) if place else 0
            if place and scores[nearest] >= self.threshold:
                self.instead[number], self.score[number] = numbers_N[nearest], scores[nearest]
            else:
                stays_N[place] = True
        self.kept = np.concatenate([self.kept, numbers_N[stays_N]])
