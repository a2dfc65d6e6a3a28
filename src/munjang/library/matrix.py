"""All vectors of one commit as rows of unit length, and each query's best among them, exactly.

The rows stand in two arrays that are never joined: `base`, usually mapped from a cache file, and `tail`, what was added since. Rows of
deleted documents may still stand there; `alive_P` says which positions count.

Shapes: N queries, M positions (base, then tail), D dimensions, P positions that take part, K answers.

`MatrixCache` keeps the store's vectors ready to be searched: in memory while there are few, in a mapped file beside the library when
there are many. `current` is asked inside a snapshot and answers for exactly that commit. It reads from the store only what it does not
have; when a tenth of the file is out of date, or the file is missing or damaged, the file is written anew. If the disk takes no file,
memory has to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from munjang.library.cache_file import read_cache, write_cache
from munjang.library.index_config import Tuning
from munjang.library.store import Store
from munjang.types import Ints, Vectors
from munjang.vectors.exact_index import FEW_QUERIES, ExactIndex
from munjang.vectors.topk import select_top

MANY_QUERIES = 32
"""Queries at once from which preparing an exact index pays."""

INDEXED_FROM = 16_384
"""Rows from which an exact index answers a single question sooner than a product in float32 does."""

INDEXED_PART = 1 / 8
"""The part of all rows that a filter must leave, or reading its rows alone is faster."""

PATIENT_SEARCHES = 4
"""Searches with few questions before an index is made for them: a command that asks once need not make one."""

SCORED_ROWS = 1024
"""Rows that are scored one by one together; they fit in the processor's cache."""


class LazyIndex:
    """An exact index of rows, made when it pays: at once for many questions, in the background after some single ones."""

    def __init__(self, rows_MD: Vectors) -> None:
        self._rows_MD = rows_MD
        self._lock = threading.Lock()
        self._asked = 0
        self._index: ExactIndex | None = None
        self._ready: ExactIndex | None = None

    def make(self) -> ExactIndex:
        """Return the index for many questions; the first caller makes it."""
        with self._lock:
            if self._index is None:
                self._index = ExactIndex(self._rows_MD, metric="dot")
            return self._index

    def find(self) -> ExactIndex | None:
        """Return the index for few questions, if it is there already."""
        self._asked += 1
        if self._asked == PATIENT_SEARCHES and len(self._rows_MD) >= INDEXED_FROM:
            threading.Thread(target=self._prepare, name="munjang-index", daemon=True).start()
        return self._ready

    def _prepare(self) -> None:
        index = self.make()
        index.prepare()
        self._ready = index


@dataclass(frozen=True, eq=False)
class Matrix:
    """The vectors of one commit. Row numbers ascend."""

    generation: int
    base_rows: Ints
    base_MD: Vectors
    tail_rows: Ints
    tail_MD: Vectors
    alive_P: Ints | None
    """Positions that are not deleted, ascending; None when all are alive."""
    shared_index: LazyIndex | None = None
    """That of an older matrix with the same base."""

    @cached_property
    def rows_M(self) -> Ints:
        """Every position's row number."""
        return np.concatenate([self.base_rows, self.tail_rows])

    def __len__(self) -> int:
        """Return how many rows are alive."""
        return len(self.rows_M) if self.alive_P is None else len(self.alive_P)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions of those of these ascending rows that are alive."""
        at = np.searchsorted(self.rows_M, rows)
        inside = at < len(self.rows_M)
        at, rows = at[inside], rows[inside]
        found: Ints = at[self.rows_M[at] == rows]
        return found if self.alive_P is None else found[np.isin(found, self.alive_P, assume_unique=True)]

    def search(self, queries_ND: Vectors, k: int, *, among_P: Ints | None = None) -> tuple[Vectors, Ints]:
        """Return the k best scores (N, K) and row numbers (N, K), best first, the lower row first on ties."""
        positions_P = self.alive_P if among_P is None else among_P
        if positions_P is None and not len(self.tail_rows) and len(queries_ND) >= MANY_QUERIES:
            scores_NK, at_NK = self.index.make().search(queries_ND, k=k)
            return scores_NK, self.rows_M[at_NK]
        index = self.index.find() if len(queries_ND) <= FEW_QUERIES else None
        count = len(self.base_rows) if positions_P is None else int(np.searchsorted(positions_P, len(self.base_rows)))
        if index is None or count < max(4 * k, INDEXED_PART * len(self.base_rows)):
            at_NK = self._find_in_float(queries_ND, k, positions_P)
        else:
            at_NK = self._find_in_index(index, queries_ND, k, positions_P)
        scores_NK = self.scores_at(queries_ND, at_NK)  # whichever way they were found, so that they round alike
        order_NK = np.lexsort((at_NK, -scores_NK))
        return np.take_along_axis(scores_NK, order_NK, 1), self.rows_M[np.take_along_axis(at_NK, order_NK, 1)]

    def _find_in_float(self, queries_ND: Vectors, k: int, positions_P: Ints | None) -> Ints:
        """Return the positions (N, K) of the best rows."""
        total = len(self.rows_M) if positions_P is None else len(positions_P)

        def fill(queries: slice, columns: slice, out: Vectors) -> None:
            part_MD = self._slice(columns) if positions_P is None else self.take(positions_P[columns])
            np.matmul(queries_ND[queries], part_MD.T, out=out)

        at_NK = select_top(fill, shape=(len(queries_ND), total), k=k)[1]
        return at_NK if positions_P is None else positions_P[at_NK]

    def _find_in_index(self, index: ExactIndex, queries_ND: Vectors, k: int, positions_P: Ints | None) -> Ints:
        """Return the positions (N, K) of the best rows: the base by its index, the tail beside it."""
        edge, among_M = len(self.base_rows), None
        tail_P = np.arange(edge, len(self.rows_M)) if positions_P is None else positions_P[np.searchsorted(positions_P, edge) :]
        if positions_P is not None:
            among_M = np.zeros(edge, dtype=bool)
            among_M[positions_P[: len(positions_P) - len(tail_P)]] = True
        scores_NK, at_NK = index.search(queries_ND, k=k, among_M=among_M)
        if not len(tail_P):
            return at_NK
        both_NW = np.concatenate([scores_NK, queries_ND @ self.take(tail_P).T], axis=1)
        places_NW = np.concatenate([at_NK, np.broadcast_to(tail_P, (len(queries_ND), len(tail_P)))], axis=1)
        best_NK = np.argsort(-both_NW, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(places_NW, best_NK, 1)

    def scores_at(self, queries_ND: Vectors, position_NW: Ints) -> Vectors:
        """Return the scores (N, W) of each query with the rows at its own positions; where a position is −1, those of the last row."""
        scores_NW = np.empty(position_NW.shape, dtype=np.float32)
        step = max(1, SCORED_ROWS // max(1, position_NW.shape[1]))
        for at in range(0, len(queries_ND), step):
            wanted_NW = position_NW[at : at + step]
            order = np.argsort(wanted_NW, axis=None)
            rows_ND = np.empty((wanted_NW.size, queries_ND.shape[1]), dtype=np.float32)
            rows_ND[order] = self.take(wanted_NW.reshape(-1)[order])
            rows_NWD = rows_ND.reshape(*wanted_NW.shape, queries_ND.shape[1])
            np.einsum("nwd,nd->nw", rows_NWD, queries_ND[at : at + step], out=scores_NW[at : at + step])
        return scores_NW

    def take(self, positions_P: Ints) -> Vectors:
        """Return the vectors at these ascending positions."""
        edge = len(self.base_rows)
        cut = int(np.searchsorted(positions_P, edge))
        if cut == len(positions_P):
            return np.asarray(self.base_MD[positions_P])
        if cut == 0:
            return np.asarray(self.tail_MD[positions_P - edge])
        return np.concatenate([self.base_MD[positions_P[:cut]], self.tail_MD[positions_P[cut:] - edge]])

    def _slice(self, columns: slice) -> Vectors:
        edge = len(self.base_rows)
        if columns.stop <= edge:
            return self.base_MD[columns]
        if columns.start >= edge:
            return self.tail_MD[columns.start - edge : columns.stop - edge]
        return np.concatenate([self.base_MD[columns.start :], self.tail_MD[: columns.stop - edge]])

    @cached_property
    def index(self) -> LazyIndex:
        """The exact index of the base, which later commits share."""
        return self.shared_index or LazyIndex(self.base_MD)


def unit(vectors_ND: Vectors) -> Vectors:
    """Return the rows scaled to length one; a row of zeros stays."""
    lengths_N1 = np.linalg.norm(vectors_ND.astype(np.float64), axis=-1, keepdims=True)
    return (vectors_ND / np.where(lengths_N1 > 0, lengths_N1, 1)).astype(np.float32)


FILE = "vectors.cache"


def document_vector(vectors_PD: Vectors, lengths_P: Sequence[int]) -> Vectors:
    """Return one unit vector for a document: the mean of its passages' directions, each weighed by its length in characters.

    >>> document_vector(np.eye(2, dtype=np.float32), [400, 300]).round(2).tolist()
    [0.800000011920929, 0.6000000238418579]
    """
    return unit(np.maximum(lengths_P, 1).astype(np.float32) @ unit(vectors_PD))


class MatrixCache:
    """The matrix of the last commit that was asked for."""

    def __init__(self, store: Store, folder: Path | None, tuning: Tuning) -> None:
        self._store, self._folder, self._tuning = store, folder, tuning
        self._lock = threading.Lock()
        self._last: Matrix | None = None

    def current(self) -> Matrix:
        """Return the matrix of the commit that this thread's snapshot sees."""
        with self._lock:
            generation = self._store.generation()
            if self._last is None or self._last.generation != generation:
                self._last = self._renew(generation)
            return self._last

    def forget(self) -> None:
        """Let go of memory and of the mapped file."""
        with self._lock:
            self._last = None

    def _renew(self, generation: int) -> Matrix:
        rows = self._store.rows()
        dimension = self._store.settings().dimension
        last = self._last if self._last is not None and self._last.base_MD.shape[1] == dimension else None
        matrix = _adapt(last or self._load(dimension), rows, generation, self._store)
        if matrix is None:
            return self._built(rows, generation, dimension)
        stale = len(matrix.tail_rows) + len(matrix.rows_M) - len(matrix)
        if stale > self._tuning.stale_part * max(len(rows), self._tuning.cache_from):
            return self._built(rows, generation, dimension)
        return matrix

    def _load(self, dimension: int) -> Matrix | None:
        if self._folder is None:
            return None
        found = read_cache(self._folder / FILE, self._belongs_to(dimension))
        return None if found is None else _matrix(0, found["rows"], found["vectors"])

    def _built(self, rows: Ints, generation: int, dimension: int) -> Matrix:
        """Read every vector from the store, into the file if there are enough of them and the disk takes it."""
        if self._folder is not None and len(rows) >= max(1, self._tuning.cache_from):
            try:
                write_cache(self._folder / FILE, self._belongs_to(dimension), {"vectors": self._blocks(dimension), "rows": [rows]})
            except OSError:  # a full or read-only disk costs speed, not the answer
                pass
            found = self._load(dimension)
            if found is not None and np.array_equal(found.base_rows, rows):
                return _matrix(generation, found.base_rows, found.base_MD)
        return _matrix(generation, rows, np.concatenate(list(self._blocks(dimension))))

    def _blocks(self, dimension: int) -> Iterator[Vectors]:
        yield np.empty((0, dimension), dtype=np.float32)
        for block in self._store.vectors():
            yield unit(block.vectors_ND)

    def _belongs_to(self, dimension: int) -> dict[str, str | int]:
        return {"what": "unit vectors", "uuid": self._store.uuid, "dimension": dimension}


def _matrix(generation: int, rows: Ints, vectors_MD: Vectors) -> Matrix:
    dimension = vectors_MD.shape[1]
    return Matrix(generation, rows, vectors_MD, np.empty(0, np.int64), np.empty((0, dimension), np.float32), None)


def _adapt(old: Matrix | None, rows: Ints, generation: int, store: Store) -> Matrix | None:
    """Bring an older matrix up to date with what was added behind its last row; None when that is not enough."""
    if old is None:
        return None
    known = np.isin(rows, old.rows_M, assume_unique=True)
    newest = int(old.rows_M[-1]) if len(old.rows_M) else 0
    fresh = rows[~known]
    if len(fresh) and int(fresh[0]) <= newest:
        return None
    blocks = list(store.vectors(after=newest)) if len(fresh) else []
    tail_rows = np.concatenate([old.tail_rows, *(block.rows_N for block in blocks)])
    tail_MD = np.concatenate([old.tail_MD, *(unit(block.vectors_ND) for block in blocks)])
    all_rows = np.concatenate([old.base_rows, tail_rows])
    alive_P = None if len(all_rows) == len(rows) else np.flatnonzero(np.isin(all_rows, rows, assume_unique=True))
    return Matrix(generation, old.base_rows, old.base_MD, tail_rows, tail_MD, alive_P, old.index)
