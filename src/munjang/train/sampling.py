"""Which rows make which batch, as a pure function of seed, stage and epoch.

Nothing is remembered between batches: the plan of an epoch can be made again at any time, so a resumed run needs only the number of the
step. Rows are shuffled; with `length_window` rows of like length meet (for encoders that must pad); with `no_duplicates` no text and no
group stands in a batch twice. Several data sets are mixed by size or evenly; each batch comes from one of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from munjang.train.recipe import Mix

_SCANNED = 64
"""Waiting rows that are tried per place of a batch, so that a file of one text over and over is still read in linear time."""


@dataclass(frozen=True)
class RowBatch:
    """Rows of one data set."""

    data: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Sampled:
    """What the sampler must know of one data set: each row's length in tokens, and the keys that must not meet in a batch."""

    lengths: Sequence[int]
    keys: Sequence[Collection[object]] | None = None
    least_rows: int = 1
    """Batches with fewer rows are left out: one row teaches nothing where rows are compared."""


def plan_epoch(
    sets: Sequence[Sampled], *, batch_size: int, seed: int, stage: int = 0, epoch: int = 0, mix: Mix = "size", length_window: int = 0
) -> list[RowBatch]:
    """Return the batches of one epoch, always the same ones for the same arguments."""
    plans = []
    for number, data in enumerate(sets):
        random = np.random.default_rng([seed, stage, epoch, number])
        rows = _make_batches(data, random, batch_size, length_window)
        plans.append([RowBatch(number, tuple(batch)) for batch in rows if len(batch) >= data.least_rows])
    random = np.random.default_rng([seed, stage, epoch, len(sets)])
    if mix == "even":
        shortest = min(len(plan) for plan in plans)
        return [plan[index] for index in range(shortest) for plan in plans]
    together = [batch for plan in plans for batch in plan]
    if len(sets) == 1:
        return together
    return [together[index] for index in random.permutation(len(together))]


def share(rows: Sequence[int], *, rank: int, count: int) -> Sequence[int]:
    """Return the rows of a batch that one of `count` processes encodes: neighbours, sizes differing by one at most.

    >>> [share([1, 2, 3, 4, 5], rank=rank, count=2) for rank in (0, 1)]
    [[1, 2, 3], [4, 5]]
    """
    sizes = share_sizes(len(rows), count)
    start = sum(sizes[:rank])
    return rows[start : start + sizes[rank]]


def share_sizes(rows: int, count: int) -> list[int]:
    """Return how many rows of a batch each process encodes."""
    return [rows // count + (rank < rows % count) for rank in range(count)]


def _make_batches(data: Sampled, random: np.random.Generator, size: int, window: int) -> Iterator[list[int]]:
    order: list[int] = random.permutation(len(data.lengths)).tolist()
    if window > 1:
        order = _group_by_length(order, data.lengths, random, size, window)
    if data.keys is None:
        return (order[start : start + size] for start in range(0, len(order), size))
    return _avoid_duplicates(order, data.keys, size)


def _group_by_length(order: list[int], lengths: Sequence[int], random: np.random.Generator, size: int, window: int) -> list[int]:
    """Sort windows of the shuffled rows by length, and shuffle the batches that come of it."""
    span = size * window
    made: list[list[int]] = []
    for start in range(0, len(order), span):
        part = sorted(order[start : start + span], key=lambda row: lengths[row])
        made += [part[at : at + size] for at in range(0, len(part), size)]
    whole = [batch for batch in made if len(batch) == size]
    short = [batch for batch in made if len(batch) < size]
    mixed = [whole[index] for index in random.permutation(len(whole))] + short
    return [row for batch in mixed for row in batch]


def _avoid_duplicates(order: list[int], keys: Sequence[Collection[object]], size: int) -> Iterator[list[int]]:
    fresh = iter(order)
    waiting: deque[int] = deque()
    while True:
        batch: list[int] = []
        seen: set[object] = set()
        again: deque[int] = deque()
        for _ in range(min(len(waiting), _SCANNED * size)):
            if len(batch) == size:
                break
            _place(waiting.popleft(), keys, batch, seen, again)
        tried = 0
        while len(batch) < size and tried < _SCANNED * size:
            row = next(fresh, None)
            if row is None:
                break
            tried += 1
            _place(row, keys, batch, seen, again)
        waiting.extendleft(reversed(again))
        if not batch:
            return
        yield batch


def _place(row: int, keys: Sequence[Collection[object]], batch: list[int], seen: set[object], again: deque[int]) -> None:
    if seen.isdisjoint(keys[row]):
        batch.append(row)
        seen.update(keys[row])
    else:
        again.append(row)
