"""An approximate index (inverted lists, from FAISS) over a matrix: rows that are probably among the nearest, in a fraction of the time.

All rows are dealt into lists around centres. A query looks into the lists whose centres are nearest, compares bytes there, and the best are
scored in float32 by the matrix, so scores are those of exact search. How many lists it takes is measured when the index is built: as many
as find `Tuning.recall` of the ten nearest rows of a sample. A query for which the lists hold too little is answered exactly.

The index may be older than the matrix: deleted rows are passed over, and rows that it does not know are scored one and all.

Bytes are those of (vector − mean) · scale; their squared distance orders rows of unit length as the cosine does, in whole numbers.

Shapes: N queries, D dimensions, L lists, G rows of the index, P positions in the matrix, W candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.errors import MissingExtra
from munjang.library.cache_file import read_cache, write_cache
from munjang.library.index_config import Tuning
from munjang.library.matrix import Matrix
from munjang.types import Ints, Vectors
from munjang.vectors.centres import find_centres, find_nearest_centre
from munjang.vectors.topk import make_keys, read_indices, read_scores

FILE = "lists.cache"
_ADDED_AT_ONCE = 16_384
_SAMPLED_PER_LIST = 64
_TRIED = 256  # sampled rows by which the number of lists to look into is chosen
_TRIED_K = 10
_ROWS_PER_ANSWER = 20  # rows that the lists looked into hold at least for each answer wanted


@dataclass(frozen=True, eq=False)
class Lists:
    """A FAISS index whose i-th vector is row `rows_G[i]`, and what turns vectors into its bytes."""

    index: Any
    rows_G: Ints
    centre_LD: Vectors
    mean_D: Vectors
    scale: float
    probes: int
    """Lists that a search for ten rows looks into."""

    def as_bytes(self, vectors_ND: Vectors) -> Vectors:
        """Return vectors as the index wants them: whole numbers from 0 to 255, as float32."""
        whole_ND = np.rint((vectors_ND - self.mean_D) * np.float32(self.scale)) + np.float32(128)
        return np.asarray(np.clip(whole_ND, 0, 255), dtype=np.float32)

    def propose(self, queries_ND: Vectors, wanted: int, probes: int, usable: NDArray[np.bool_] | None) -> Ints:
        """Return the numbers (N, W) of the index' rows that seem nearest; −1 where there are no more."""
        faiss = _faiss()
        scores_NL = queries_ND @ self.centre_LD.T
        probes = min(probes, len(self.centre_LD))
        near_NL = np.argpartition(-scores_NL, probes - 1, axis=1)[:, :probes]
        order_N = np.argsort(scores_NL.argmax(axis=1), kind="stable")  # queries of one list one after the other: it stays in the cache
        parameters = faiss.SearchParametersIVF(nprobe=probes)
        if usable is not None:
            bits = np.packbits(usable, bitorder="little")
            parameters = faiss.SearchParametersIVF(nprobe=probes, sel=faiss.IDSelectorBitmap(bits))
        near_NL = np.ascontiguousarray(near_NL[order_N], dtype=np.int64)
        asked_ND = self.as_bytes(queries_ND[order_N])
        unused_NL = np.zeros(near_NL.shape, dtype=np.float32)
        far_NW, label_NW = np.empty((len(asked_ND), wanted), dtype=np.float32), np.empty((len(asked_ND), wanted), dtype=np.int64)
        arrays = (asked_ND, near_NL, unused_NL, far_NW, label_NW)
        asked, near, unused, far, labels = (faiss.swig_ptr(array) for array in arrays)
        self.index.search_preassigned_c(len(asked_ND), asked, wanted, near, unused, far, labels, False, parameters)
        found_NW = np.empty_like(label_NW)
        found_NW[order_N] = label_NW
        return found_NW


@dataclass(frozen=True, eq=False)
class IvfIndex:
    """An index beside a matrix that may be younger: what of the one stands where in the other."""

    lists: Lists
    matrix: Matrix
    position_G: Ints
    """The position of each of the index' rows in the matrix; −1 for a row that is gone."""
    fresh_P: Ints
    """Positions of rows that the index does not know."""

    def stale(self, part: float) -> bool:
        """Say whether more than this part has changed since the index was built."""
        changed = len(self.fresh_P) + int((self.position_G < 0).sum())
        return changed > part * max(1, len(self.matrix))

    def search(self, queries_ND: Vectors, k: int, *, among_P: Ints | None = None) -> list[tuple[Vectors, Ints]]:
        """Return for each query up to k scores and row numbers, best first, probably the best there are."""
        total = len(self.matrix) if among_P is None else len(among_P)
        fresh_P = self.fresh_P if among_P is None else np.intersect1d(self.fresh_P, among_P, assume_unique=True)
        position_NW = self._candidates(queries_ND, k, among_P, total)
        keys_NW = np.where(position_NW >= 0, make_keys(self.matrix.scores_at(queries_ND, position_NW), position_NW), np.uint64(0))
        if len(fresh_P):
            scores_NK, rows_NK = self.matrix.search(queries_ND, k, among_P=fresh_P)
            keys_NW = np.concatenate([keys_NW, make_keys(scores_NK, np.searchsorted(self.matrix.rows_M, rows_NK))], axis=1)
        keys_NK = np.sort(keys_NW, axis=1)[:, ::-1][:, :k]
        count_N = (keys_NK > 0).sum(axis=1)
        scores_NK, at_NK = read_scores(keys_NK), read_indices(keys_NK)
        rows_NK = self.matrix.rows_M[np.where(keys_NK > 0, at_NK, 0)]
        answers = [(scores[:count], rows[:count]) for scores, rows, count in zip(scores_NK, rows_NK, count_N.tolist(), strict=True)]
        short = np.flatnonzero(count_N < min(k, total))
        if len(short):
            exact = self.matrix.search(queries_ND[short], k, among_P=among_P)
            for place, scores, rows in zip(short.tolist(), *exact, strict=True):
                answers[place] = (scores, rows)
        return answers

    def _candidates(self, queries_ND: Vectors, k: int, among_P: Ints | None, total: int) -> Ints:
        """Return positions (N, W) in the matrix; −1 where there are no more."""
        held = len(self.lists.rows_G)
        probes = max(self.lists.probes, -(-_ROWS_PER_ANSWER * k * len(self.lists.centre_LD) // held))
        probes = -(-probes * held // max(1, total))  # a filter leaves each list so much emptier
        usable = self._usable(among_P)
        label_NW = self.lists.propose(queries_ND, min(k + max(10, k // 4), held), probes, usable)
        return np.where(label_NW >= 0, self.position_G[label_NW], -1)

    def _usable(self, among_P: Ints | None) -> NDArray[np.bool_] | None:
        """Return which of the index' rows may be proposed; None when all may."""
        if among_P is None:
            return None if (self.position_G >= 0).all() else self.position_G >= 0
        allowed = np.zeros(len(self.matrix.rows_M) + 1, dtype=np.bool_)  # the last place is that of position −1
        allowed[among_P] = True
        return allowed[self.position_G]


def fit_lists(lists: Lists, matrix: Matrix) -> IvfIndex:
    """Lay an index beside a matrix."""
    known_P = matrix.positions(lists.rows_G)
    position_G = np.full(len(lists.rows_G), -1, dtype=np.int64)
    position_G[np.isin(lists.rows_G, matrix.rows_M[known_P], assume_unique=True)] = known_P
    alive_P = np.arange(len(matrix.rows_M)) if matrix.alive_P is None else matrix.alive_P
    return IvfIndex(lists, matrix, position_G, np.setdiff1d(alive_P, known_P, assume_unique=True))


def build_lists(matrix: Matrix, tuning: Tuning, *, seed: int = 0) -> Lists:
    """Build the index of all rows that are alive: as many lists as the square root of the rows."""
    faiss = _faiss()
    positions_P = np.arange(len(matrix.rows_M)) if matrix.alive_P is None else matrix.alive_P
    count = max(1, round(len(positions_P) ** 0.5))
    chosen_P = np.random.default_rng(seed).choice(positions_P, min(len(positions_P), _SAMPLED_PER_LIST * count), replace=False)
    sample_ND = matrix.take(np.sort(chosen_P))
    centre_LD = find_centres(sample_ND, count, seed=seed)
    mean_D = sample_ND.mean(axis=0)
    scale = 127 / max(1e-6, float(np.quantile(np.abs(sample_ND[:4096] - mean_D).max(axis=1), 0.99)))
    quantizer = faiss.IndexFlatL2(centre_LD.shape[1])
    quantizer.add(centre_LD)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, centre_LD.shape[1], count, faiss.ScalarQuantizer.QT_8bit_direct, faiss.METRIC_L2, False
    )
    index.is_trained = True  # centres are given, and bytes need no training
    lists = Lists(index, matrix.rows_M[positions_P], centre_LD, mean_D, scale, probes=1)
    for start in range(0, len(positions_P), _ADDED_AT_ONCE):
        part_ND = matrix.take(positions_P[start : start + _ADDED_AT_ONCE])
        bytes_ND, nearest_N = lists.as_bytes(part_ND), find_nearest_centre(part_ND, centre_LD)
        index.add_core(len(bytes_ND), faiss.swig_ptr(bytes_ND), None, faiss.swig_ptr(nearest_N))
    tried_ND = matrix.take(np.sort(chosen_P[:_TRIED]))
    return Lists(index, lists.rows_G, centre_LD, mean_D, scale, _probes_for(lists, matrix, tried_ND, tuning.recall))


def load_lists(folder: Path, belongs_to: Mapping[str, str | int]) -> Lists | None:
    """Return the index from its cache file, or None."""
    found = read_cache(folder / FILE, belongs_to)
    if found is None:
        return None
    scale, probes = found["numbers"].tolist()
    index = _faiss().deserialize_index(found["index"])
    return Lists(index, np.array(found["rows"]), np.array(found["centres"]), np.array(found["mean"]), scale, int(probes))


def save_lists(folder: Path, belongs_to: Mapping[str, str | int], lists: Lists) -> None:
    """Write the index' cache file, if the disk takes it."""
    arrays = {
        "index": [_faiss().serialize_index(lists.index)],
        "rows": [lists.rows_G],
        "centres": [lists.centre_LD],
        "mean": [lists.mean_D],
        "numbers": [np.array([lists.scale, lists.probes], dtype=np.float64)],
    }
    try:
        write_cache(folder / FILE, belongs_to, arrays)
    except OSError:
        pass


def _probes_for(lists: Lists, matrix: Matrix, tried_ND: Vectors, recall: float) -> int:
    """Return how many lists find this part of the nearest rows of those tried, each of which is in the index itself and does not count."""
    k = min(_TRIED_K + 1, len(lists.rows_G))
    truth_NK = matrix.search(tried_ND, k)[1][:, 1:]
    probes = 1
    while probes < len(lists.centre_LD):
        found_NW = lists.rows_G[lists.propose(tried_ND, min(2 * k, len(lists.rows_G)), probes, None)]
        hits = (truth_NK[:, :, None] == found_NW[:, None, :]).any(axis=2)
        if hits.mean() >= recall:
            break
        probes += max(1, probes // 4)
    return min(probes, len(lists.centre_LD))


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("approximate search", "search") from None
    return faiss
