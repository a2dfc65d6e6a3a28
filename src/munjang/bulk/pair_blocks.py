"""A finished job's vectors → its pairs of nearly the same meaning, for collections that no machine's memory holds.

Every shard is compared with itself and with all shards behind it: each such block is a task, on this machine one after the other or on a
Dask cluster. A task reads two shards, keeps its best pairs, and hands back nothing else. Exact, like `munjang pairs`. Rows whose
cosine is at least `SAME` are the very same for this purpose: they are counted, not listed, since n copies would make n² pairs.

Shapes: N and M rows of two shards, D dimensions, P pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from munjang.analyze.pairs import mine_pairs
from munjang.bulk.output import BulkOutput, open_output
from munjang.bulk.storage import is_url
from munjang.errors import InputError, UsageError
from munjang.options import default_of
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import prepare_rows
from munjang.wording import brief_repr

SAME = 0.999_999
TILE = 2_048
"""Rows and columns of scores held at once."""


class _Task(NamedTuple):
    """What every block needs to know."""

    place: str
    content: str
    threshold: float
    top: int


class IdPair(NamedTuple):
    """Two documents by their ids and the cosine of their vectors."""

    a: str
    b: str
    score: float


@brief_repr
@dataclass(frozen=True)
class BulkPairs:
    """What was found."""

    pairs: tuple[IdPair, ...]
    """Best first; equal scores by the rows' places in the input."""
    same: int
    """Pairs of rows that are the very same."""
    cut: bool
    """Whether there are more pairs at or above the threshold than were asked for."""


@dataclass(frozen=True)
class _Best:
    """The best pairs of a block: places of rows in the whole input, scores, ids."""

    a_P: Ints
    b_P: Ints
    score_P: Vectors
    ids: dict[int, str]
    same: int
    cut: bool


def count_blocks(place: str) -> int:
    """Return how many blocks `mine_output` has to do."""
    shards = len(_list_shards(open_output(place)))
    return shards * (shards + 1) // 2


def mine_output(
    place: str,
    *,
    threshold: float = default_of(mine_pairs, "threshold"),
    top: int = 100_000,
    client: Any = None,
    progress: Callable[[int], None] | None = None,
) -> BulkPairs:
    """Return the `top` best pairs of rows whose cosine is at least the threshold; with a Dask client, computed on its workers.

    `progress` is called with 1 after each block.
    """
    if not -1 <= threshold <= 1 or top < 1:
        raise UsageError(f"threshold is {threshold} and top is {top}; expected -1 to 1, and at least 1")
    place = place if is_url(place) else str(Path(place).absolute())  # a worker of a cluster may run in another folder
    output = open_output(place)
    if output.job.settings.precision not in ("float32", "float16"):
        raise UsageError(f"{place}: holds {output.job.settings.precision} vectors, pairs need float32 or float16")
    shards = _list_shards(output)
    blocks = ((a, b) for at, a in enumerate(shards) for b in shards[at:])
    found = _Best(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), {}, 0, False)
    task = _Task(place, _hash_content(output), threshold, top)
    results = (block_pairs(task, a, b) for a, b in blocks) if client is None else _run_on(client, task, blocks)
    for best in results:
        found = _join(found, best, top)
        if progress is not None:
            progress(1)
    pairs = zip(found.a_P.tolist(), found.b_P.tolist(), found.score_P.tolist(), strict=True)
    return BulkPairs(tuple(IdPair(found.ids[a], found.ids[b], score) for a, b, score in pairs), found.same, found.cut)


def _list_shards(output: BulkOutput) -> list[int]:
    return [number for number, receipt in enumerate(output.receipts) if receipt.rows]


def _hash_content(output: BulkOutput) -> str:
    """Return what only this output's vectors are known by."""
    return hashlib.sha256("".join(file.sha256 for receipt in output.receipts for file in receipt.files).encode()).hexdigest()


def _run_on(client: Any, task: _Task, blocks: Iterator[tuple[int, int]]) -> Iterator[_Best]:
    from munjang.bulk.dask_run import run_tasks

    return run_tasks(client, block_pairs, ((task, a, b) for a, b in blocks), then="call it again")


def block_pairs(task: _Task, a: int, b: int) -> _Best:
    """Return the best pairs between two shards, or inside one."""
    output = _open_output(task.place, task.content)
    start_a, start_b = (sum(receipt.rows for receipt in output.receipts[:number]) for number in (a, b))
    ids_a, unit_ND = _normalize(task.place, task.content, a)
    ids_b, unit_MD = (ids_a, unit_ND) if a == b else _normalize(task.place, task.content, b)
    found = _Best(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), {}, 0, False)
    for at in range(0, len(unit_ND), TILE):
        for beside in range(at if a == b else 0, len(unit_MD), TILE):
            scores_NM = unit_ND[at : at + TILE] @ unit_MD[beside : beside + TILE].T
            if a == b and at == beside:
                scores_NM[np.tril_indices(len(scores_NM))] = -np.inf
            rows_P, columns_P = np.nonzero(scores_NM >= np.float32(task.threshold))
            score_P = scores_NM[rows_P, columns_P]
            other = score_P < np.float32(SAME)
            a_P, b_P = (rows_P + at + start_a)[other], (columns_P + beside + start_b)[other]
            found = _join(found, _Best(a_P, b_P, score_P[other], {}, int((~other).sum()), False), task.top)
    ids = {place: ids_a[place - start_a] for place in found.a_P.tolist()} | {place: ids_b[place - start_b] for place in found.b_P.tolist()}
    return _Best(found.a_P, found.b_P, found.score_P, ids, found.same, found.cut)


def _join(one: _Best, other: _Best, top: int) -> _Best:
    """Return the best of two, best first, equal scores by places, so that the order of blocks does not matter."""
    a_P, b_P = np.concatenate([one.a_P, other.a_P]), np.concatenate([one.b_P, other.b_P])
    score_P = np.concatenate([one.score_P, other.score_P])
    order = np.lexsort((b_P, a_P, -score_P))[:top]
    ids = one.ids | other.ids
    if ids:
        ids = {place: ids[place] for place in {*a_P[order].tolist(), *b_P[order].tolist()}}
    cut = one.cut or other.cut or len(score_P) > top
    return _Best(a_P[order], b_P[order], score_P[order], ids, one.same + other.same, cut)


@lru_cache(maxsize=4)
def _normalize(place: str, content: str, number: int) -> tuple[list[str], Vectors]:
    block = _open_output(place, content).block(number)
    return block.ids, prepare_rows(np.asarray(block.vectors_ND, dtype=np.float32), "cosine")


@lru_cache(maxsize=2)
def _open_output(place: str, content: str) -> BulkOutput:
    """Open an output once; `content` tells it from what stood at the same place before."""
    output = open_output(place)
    if _hash_content(output) != content:
        raise InputError(f"{place}: was rewritten, or is another folder on this machine\n  call it again when the job is done")
    return output
