"""Queries and a corpus → for each query its k best rows, exactly.

Scores are computed a block of the corpus at a time. Every query remembers its k best so far; in the next block only columns above the
k-th of them can matter, and after the first blocks those are few, so nearly all time goes into the matrix product. Scores are sorted from
high to low and equal scores by index, so the answer for k is a prefix of the answer for k + 1. Memory is bounded by the answer plus one
block of scores, however large the corpus; a corpus on disk (`numpy.memmap`) is read block by block, once per 1,024 queries.

Shapes: N queries, M corpus rows, D dimensions, K answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError, UsageError
from munjang.types import Ints, Metric, Vectors
from munjang.vectors.similarity import BLOCK, check_block, check_metric, check_same_dimension, fill_scores, prepare_rows, to_rows

LARGEST_INDEX = 0xFFFFFFFF

_INDEX_MASK = np.uint64(LARGEST_INDEX)
_SIGN = np.uint32(0x80000000)


class TopKBuffer:
    """The k best of each query so far; indices must be offered in ascending order of blocks."""

    def __init__(self, n: int, k: int) -> None:
        self.keys_NK = np.zeros((n, k), dtype=np.uint64)  # key 0 is below every real key: an empty place
        self.floor_N = np.full(n, -np.inf, dtype=np.float32)
        """The k-th best score so far: what is not above it cannot matter."""

    def offer_block(self, scores_NM: Vectors, start: int) -> None:
        """Let every query's scores with the rows from `start` on compete."""
        k, width = self.keys_NK.shape[1], scores_NM.shape[1]
        mask_NM = scores_NM > self.floor_N[:, None]
        many = max(64, 4 * k)
        if np.count_nonzero(mask_NM) > many * len(mask_NM):
            _tighten(mask_NM, scores_NM, np.arange(len(mask_NM)), k)
        flat = np.flatnonzero(mask_NM)
        heavy = np.flatnonzero(np.bincount(flat // width, minlength=len(mask_NM)) > many)
        if len(heavy):
            _tighten(mask_NM, scores_NM, heavy, k)
            flat = np.flatnonzero(mask_NM)
        self._contest(flat // width, start + flat % width, scores_NM.reshape(-1)[flat])

    def offer_pairs(self, queries_P: Ints, indices_P: Ints, scores_P: Vectors) -> None:
        """Let single scores compete, in any order; one equal to the floor may still win by its lower index."""
        above = np.flatnonzero(scores_P >= self.floor_N[queries_P])
        above = above[np.argsort(queries_P[above], kind="stable")]
        self._contest(queries_P[above], indices_P[above], scores_P[above])

    def answer(self) -> NDArray[np.uint64]:
        """Return the keys, best first."""
        if not self.keys_NK.all():
            raise InputError(
                "scores overflow float32; expected vectors whose products stay below 3e38\n  normalize the vectors, or use metric cosine"
            )
        return np.sort(self.keys_NK, axis=1)[:, ::-1]

    def _contest(self, queries_P: Ints, indices_P: Ints, scores_P: Vectors) -> None:
        """Let pairs sorted by query compete with the best so far."""
        k = self.keys_NK.shape[1]
        counts_N = np.bincount(queries_P, minlength=len(self.keys_NK))
        hit = np.flatnonzero(counts_N)
        if not len(hit):
            return
        most = int(counts_N.max())
        contest = np.zeros((len(hit), k + most), dtype=np.uint64)
        contest[:, :k] = self.keys_NK[hit]
        contest[:, k:][np.arange(most) < counts_N[hit, None]] = make_keys(scores_P, indices_P)
        contest.partition(most, axis=1)
        self.keys_NK[hit] = contest[:, most:]
        full = contest[:, most] > 0
        self.floor_N[hit[full]] = read_scores(contest[full, most])


def make_keys(scores: Vectors, indices: Ints) -> NDArray[np.uint64]:
    """Pack each score and index into one integer."""
    bits = (scores + np.float32(0)).view(np.uint32)  # + 0 makes −0 and 0 the same
    ordered = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return (ordered.astype(np.uint64) << np.uint64(32)) | (_INDEX_MASK - indices.astype(np.uint64))


def read_scores(keys: NDArray[np.uint64]) -> Vectors:
    """Return the scores in the keys."""
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered & _SIGN, ordered & ~_SIGN, ~ordered).astype(np.uint32).view(np.float32)


def read_indices(keys: NDArray[np.uint64]) -> Ints:
    """Return the indices in the keys."""
    return (_INDEX_MASK - (keys & _INDEX_MASK)).astype(np.int64)


def _tighten(mask_NM: NDArray[np.bool_], scores_NM: Vectors, rows: Ints, k: int) -> None:
    """Drop columns that cannot be among the k best of this block alone; ties with the k-th stay, indices decide about them later.

    A block in which so many columns are left has more than k of them.
    """
    width = scores_NM.shape[1]
    kth_N = np.partition(scores_NM[rows], width - k, axis=1)[:, width - k]
    mask_NM[rows] &= scores_NM[rows] >= kth_N[:, None]


FillScores = Callable[[slice, slice, Vectors], None]
"""Write the scores of these queries with these corpus rows into the array."""

_QUERIES = 1024  # queries that go through the corpus together
_FIRST_BLOCK = 1024  # the first block is sorted out whole, so it is small


def top_k(
    queries: ArrayLike,
    corpus: NDArray[np.generic],
    *,
    k: int,
    metric: Metric = "cosine",
    block: int = BLOCK,
    exclude_self: bool = False,
    threads: int | None = None,
) -> tuple[Vectors, Ints]:
    """Return the k best corpus rows of each query: scores (n, k) float32 and indices (n, k) int64, best first, lower index first on ties.

    With fewer than k rows to choose from, all of them are returned. `exclude_self` says that the queries are the corpus itself and no row
    is its own answer. `threads` are Python threads over groups of queries; the matrix product uses the threads of numpy's BLAS besides.

    >>> scores, indices = top_k([1, 0], np.array([[0, 1], [2, 0], [1, 0]]), k=2)
    >>> scores.tolist(), indices.tolist()
    ([[1.0, 1.0]], [[1, 2]])
    """
    check_metric(metric)
    queries_ND = to_rows(queries, "queries")
    corpus = _read_corpus(corpus)
    check_same_dimension(queries_ND, corpus, "queries", "corpus")
    queries_ND = prepare_rows(queries_ND, metric)

    def fill(rows: slice, columns: slice, out_NM: Vectors) -> None:
        part_MD = np.ascontiguousarray(corpus[columns], dtype=np.float32)
        _fill_and_check(queries_ND[rows], part_MD, metric, columns.start, out_NM)

    return select_top(
        fill,
        shape=(len(queries_ND), len(corpus)),
        k=k,
        block=block,
        exclude_self=exclude_self,
        threads=threads if threads is not None else _choose_threads(metric),
    )


def select_top(
    fill: FillScores, *, shape: tuple[int, int], k: int, block: int = BLOCK, exclude_self: bool = False, threads: int = 1
) -> tuple[Vectors, Ints]:
    """Return the k best columns of a score matrix that is never whole in memory: `fill` is asked for one block at a time."""
    n, m = shape
    _check_request(n, m, k, block, exclude_self, threads)
    k = min(k, max(0, m - 1 if exclude_self else m))
    keys_NK = np.empty((n, k), dtype=np.uint64)

    def group(start: int) -> None:
        rows = slice(start, min(n, start + _QUERIES))
        keys_NK[rows] = _find_best_keys(fill, rows, m, k, block, exclude_self)

    starts = range(0, n, _QUERIES) if k else range(0)
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(group, starts))
    else:
        for start in starts:
            group(start)
    return read_scores(keys_NK), read_indices(keys_NK)


def _find_best_keys(fill: FillScores, rows: slice, m: int, k: int, block: int, exclude_self: bool) -> NDArray[np.uint64]:
    """Walk through the corpus once and return the k best keys of these queries, best first."""
    n = rows.stop - rows.start
    best = TopKBuffer(n, k)
    scores_flat = np.empty(n * min(block, m), dtype=np.float32)
    start = 0
    while start < m:
        stop = min(m, start + (min(block, max(_FIRST_BLOCK, 4 * k)) if start == 0 else block))
        scores_NM = scores_flat[: n * (stop - start)].reshape(n, stop - start)
        fill(rows, slice(start, stop), scores_NM)
        if exclude_self:
            _forbid_self(scores_NM, rows, start)
        best.offer_block(scores_NM, start)
        start = stop
    return best.answer()


def _forbid_self(scores_NM: Vectors, rows: slice, start: int) -> None:
    first, last = max(rows.start, start), min(rows.stop, start + scores_NM.shape[1])
    own = np.arange(first, max(first, last))
    scores_NM[own - rows.start, own - start] = -np.inf


def _fill_and_check(queries_ND: Vectors, part_MD: Vectors, metric: Metric, start: int, out_NM: Vectors) -> None:
    """Score one block; a NaN or infinity in the corpus shows in the first query's scores, so looking there is enough."""
    with np.errstate(over="ignore", invalid="ignore"):
        fill_scores(queries_ND, prepare_rows(part_MD, metric), metric=metric, out_NM=out_NM)
    if np.isfinite(out_NM[0]).all():
        return
    bad = np.flatnonzero(~np.isfinite(part_MD).all(axis=1))
    if len(bad):
        where = f"corpus row {start + int(bad[0])}"
        raise InputError(f"{where}: holds NaN or infinity; expected finite numbers\n  encode that text again, or leave it out")


def _read_corpus(corpus: ArrayLike) -> NDArray[np.generic]:
    found: NDArray[np.generic] = np.atleast_2d(np.asanyarray(corpus))
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        raise UsageError(f"corpus: found shape {found.shape} of {found.dtype}; expected numbers of shape (m, d)")
    return found


def _choose_threads(metric: Metric) -> int:
    # BLAS has threads of its own, which Python threads would only fight with; Manhattan does not use BLAS.
    return (os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) or 1 if metric == "manhattan" else 1


def _check_request(n: int, m: int, k: int, block: int, exclude_self: bool, threads: int) -> None:
    check_block(block)
    if k < 1 or threads < 1:
        raise UsageError(f"k is {k} and threads is {threads}; expected at least 1 of each")
    if exclude_self and n != m:
        raise UsageError(f"exclude_self: found {n} queries and {m} corpus rows; expected the corpus itself as queries")
    if m > LARGEST_INDEX:
        raise UsageError(f"the corpus has {m:,} rows; expected at most {LARGEST_INDEX:,}\n  search it in parts")
