"""Scores that arrive in blocks or in pairs → each query's k best, equal scores by lower index.

Score and index are packed into one integer that sorts by score, then by lower index: no two are equal, so no sort needs to be stable and
the answer does not depend on how the scores were cut into blocks. Where scores come from is left to `topk` and `exact_index`.

Shapes: N queries, M corpus rows of one block, P pairs, K answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError
from munjang.types import Ints, Vectors

LARGEST_INDEX = 0xFFFFFFFF

_INDEX_MASK = np.uint64(LARGEST_INDEX)
_SIGN = np.uint32(0x80000000)


class Best:
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
        contest[:, k:][np.arange(most) < counts_N[hit, None]] = keys_of(scores_P, indices_P)
        contest.partition(most, axis=1)
        self.keys_NK[hit] = contest[:, most:]
        full = contest[:, most] > 0
        self.floor_N[hit[full]] = scores_of(contest[full, most])


def keys_of(scores: Vectors, indices: Ints) -> NDArray[np.uint64]:
    """Pack each score and index into one integer."""
    bits = (scores + np.float32(0)).view(np.uint32)  # + 0 makes −0 and 0 the same
    ordered = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return (ordered.astype(np.uint64) << np.uint64(32)) | (_INDEX_MASK - indices.astype(np.uint64))


def scores_of(keys: NDArray[np.uint64]) -> Vectors:
    """Return the scores in the keys."""
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered & _SIGN, ordered & ~_SIGN, ~ordered).astype(np.uint32).view(np.float32)


def indices_of(keys: NDArray[np.uint64]) -> Ints:
    """Return the indices in the keys."""
    return (_INDEX_MASK - (keys & _INDEX_MASK)).astype(np.int64)


def _tighten(mask_NM: NDArray[np.bool_], scores_NM: Vectors, rows: Ints, k: int) -> None:
    """Drop columns that cannot be among the k best of this block alone; ties with the k-th stay, indices decide about them later.

    A block in which so many columns are left has more than k of them.
    """
    width = scores_NM.shape[1]
    kth_N = np.partition(scores_NM[rows], width - k, axis=1)[:, width - k]
    mask_NM[rows] &= scores_NM[rows] >= kth_N[:, None]
