"""A corpus, prepared once → each query's k best rows, exactly, at a third of the price of a float32 product.

A first pass multiplies bytes (`int8_product`) and drops the rows that cannot be among the best by a proven bound (`coarse`); what is left,
a few in ten thousand, is scored again in float32. So the answer is that of `top_k`, up to the last digit of float32. Where the bound
decides nothing, because very many rows are nearly alike, a block is scored in float32 straight away. A small corpus, or a processor without
an exact integer product, gets no first pass at all.

The index holds one byte per number besides the corpus, which may be on disk (`numpy.memmap`): only rows that survive are read. Few queries
have the corpus laid out for the processor, a second byte per number, instead of themselves: a quarter of the time.

Shapes: N queries, M corpus rows, D dimensions, P pairs of a query and a row, K answers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import UsageError
from munjang.limits import usable_cores
from munjang.types import Ints, Metric, Vectors
from munjang.vectors.coarse import ROWS, ZERO, CoarseQueries, CoarseRows, Product, is_available, make_product, round_queries, round_rows
from munjang.vectors.similarity import BLOCK, check_metric, check_same_dimension, prepare_rows, to_rows
from munjang.vectors.topk import LARGEST_INDEX, TopKBuffer, make_keys, read_indices, read_scores, top_k

_CROWDED = 1 / 32  # a block of which more than this survives is scored in float32
_PATIENCE = 8  # crowded blocks before the first pass is given up, unless it paid in as many others
_WAITING = 24  # survivors per query after which the floor is raised
_PAIRS = 512  # survivors that are scored again together; their vectors fit in the processor's cache


class Walk:
    """One group of queries on its way through the corpus."""

    def __init__(self, corpus: NDArray[Any], rows: CoarseRows, queries_ND: Vectors, metric: Metric) -> None:
        self.corpus, self.rows, self.queries_ND, self.metric = corpus, rows, queries_ND, metric

    def best(self, k: int) -> NDArray[np.uint64]:
        """Return the k best keys of each query, best first; the corpus has at least four times as many rows."""
        best = TopKBuffer(len(self.queries_ND), k)
        coarse = round_queries(self.queries_ND, self.rows.steps)
        product = make_product(coarse.bytes_DN)
        waiting = _Waiting(coarse, self.rows)
        crowded = calm = 0
        for block, start in enumerate(range(0, len(self.corpus), ROWS)):
            if start < 2 * k and 2 * k > ROWS:  # nothing to compare with yet
                best.offer_block(self._scores(start, ROWS), start)
                continue
            if crowded > _PATIENCE and crowded > calm:
                for rest in range(start, len(self.corpus), BLOCK):
                    best.offer_block(self._scores(rest, BLOCK), rest)
                break
            products_MN = product(self.rows.bytes_MD[start : start + ROWS])
            if start == 0:
                self._begin(best, products_MN, k)
            survivors = np.flatnonzero(products_MN > coarse.least(best.floor_N, self.rows, block))
            if len(survivors) > _CROWDED * products_MN.size:
                crowded += 1
                if start == 0:
                    best = TopKBuffer(len(self.queries_ND), k)  # no row may compete twice
                best.offer_block(self._scores(start, ROWS), start)
                continue
            calm += 1
            waiting.add(survivors, products_MN.reshape(-1)[survivors], start)
            if waiting.count > _WAITING * len(self.queries_ND):
                self._score_again(best, waiting)
        self._score_again(best, waiting)
        one_way = not crowded and 2 * k <= ROWS
        return best.answer() if one_way else self._with_equal_rounding(best.answer())

    def best_in_float(self, k: int, among_M: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
        """Return the k best keys of each query among these rows without a first pass, best first."""
        best = TopKBuffer(len(self.queries_ND), k)
        for start in range(0, len(self.corpus), BLOCK):
            scores_NM = self._scores(start, BLOCK)
            if among_M is not None:
                scores_NM[:, ~among_M[start : start + BLOCK]] = -np.inf
            best.offer_block(scores_NM, start)
        return self._with_equal_rounding(best.answer())

    def _begin(self, best: TopKBuffer, products_MN: NDArray[np.int32], k: int) -> None:
        """Score each query's rows with the k largest products, and take them out of the products."""
        cut = len(products_MN) - k
        products_NM = np.ascontiguousarray(products_MN.T)
        row_NK = np.argpartition(products_NM, cut, axis=1)[:, cut:]
        query_P, row_P = np.repeat(np.arange(len(row_NK)), k), row_NK.reshape(-1)
        self.compete(best, query_P, row_P)
        products_MN[row_P, query_P] = np.iinfo(np.int32).min

    def _scores(self, start: int, count: int) -> Vectors:
        """Return the float32 scores of all queries with some rows, shape (n, rows)."""
        return np.asarray(self.queries_ND @ self._float_rows(slice(start, start + count)).T)

    def _score_again(self, best: TopKBuffer, waiting: _Waiting) -> None:
        """Score the survivors in float32 and let them compete: first each query's most promising, then what these leave possible."""
        query_P, row_P, most_P = waiting.taken(best.floor_N)
        first = np.flatnonzero(_find_place(query_P) < best.keys_NK.shape[1])
        self.compete(best, query_P[first], row_P[first])
        open_P = most_P >= best.floor_N[query_P]
        open_P[first] = False
        rest = np.flatnonzero(open_P)
        self.compete(best, query_P[rest], row_P[rest])

    def compete(self, best: TopKBuffer, query_P: Ints, row_P: Ints) -> None:
        """Score pairs that stand query by query in float32, and let them compete."""
        best.offer_pairs(query_P, row_P, self._score_pairs(query_P, row_P))

    def _score_pairs(self, query_P: Ints, row_P: Ints) -> Vectors:
        """Return the scores of pairs that stand query by query; queries with about as many pairs are scored together."""
        scores_P = np.empty(len(query_P), dtype=np.float32)
        begins_G, sizes_G = _make_groups(query_P)
        order_G = np.argsort(sizes_G, kind="stable")
        at = 0
        while at < len(order_G):
            most = int(sizes_G[order_G[min(at + _PAIRS // int(sizes_G[order_G[at]]), len(order_G) - 1)]])
            chosen_G = order_G[at : at + max(1, _PAIRS // most)]
            width = int(sizes_G[chosen_G[-1]])
            pair_GW = begins_G[chosen_G, None] + np.minimum(np.arange(width), sizes_G[chosen_G, None] - 1)  # shorter ones repeat their last
            rows_GWD = self._float_rows(row_P[pair_GW.reshape(-1)]).reshape(*pair_GW.shape, -1)
            scores_P[pair_GW] = np.einsum("gwd,gd->gw", rows_GWD, self.queries_ND[query_P[begins_G[chosen_G]]])
            at += len(chosen_G)
        return scores_P

    def _float_rows(self, which: slice | Ints) -> Vectors:
        found = self.corpus[which] if isinstance(which, slice) else self.corpus.take(which, axis=0)
        rows_MD = np.ascontiguousarray(found, dtype=np.float32)
        return rows_MD if self.rows.prepared_already else prepare_rows(rows_MD, self.metric)

    def _with_equal_rounding(self, keys_NK: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Score the winners once more, all in the same way: a block's product and a pair's may differ in the last digit."""
        n, k = keys_NK.shape
        rows_P = read_indices(keys_NK).reshape(-1)
        queries_P = np.repeat(np.arange(n), k)
        return np.sort(make_keys(self._score_pairs(queries_P, rows_P), rows_P).reshape(n, k), axis=1)[:, ::-1]


class _Waiting:
    """Survivors of the first pass that are still to be scored again."""

    def __init__(self, coarse: CoarseQueries, rows: CoarseRows) -> None:
        self.coarse, self.rows = coarse, rows
        self.count = 0
        self._pairs: list[tuple[Ints, Ints, NDArray[np.int32]]] = []

    def add(self, survivors: Ints, products: NDArray[np.int32], start: int) -> None:
        """Remember survivors of the block from `start` on, numbered row × queries + query."""
        row_P, query_P = np.divmod(survivors, len(self.coarse.step_N))
        self._pairs.append((query_P, row_P + start, products))
        self.count += len(survivors)

    def taken(self, floor_N: Vectors) -> tuple[Ints, Ints, Vectors]:
        """Hand over the pairs that can still reach the floor, which has risen meanwhile: queries, rows, the most they can score.

        They are sorted by query, then by that most.
        """
        if not self._pairs:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        query_P, row_P, product_P = (np.concatenate(part) for part in zip(*self._pairs, strict=True))
        self._pairs, self.count = [], 0
        most_P = self.coarse.at_most(product_P, query_P, row_P, self.rows)
        kept = np.flatnonzero(most_P >= floor_N[query_P])
        kept = kept[np.argsort(_group(most_P[kept], query_P[kept]))[::-1]]
        return query_P[kept], row_P[kept], most_P[kept]


def _make_groups(group_P: Ints) -> tuple[Ints, Ints]:
    """Return where each group begins and how large it is; groups are contiguous."""
    begins_G = np.flatnonzero(np.diff(group_P, prepend=-1))
    return begins_G, np.diff(begins_G, append=len(group_P))


def _find_place(group_P: Ints) -> Ints:
    """Return how many of its own group stand before each one."""
    begins_G, sizes_G = _make_groups(group_P)
    return np.arange(len(group_P)) - np.repeat(begins_G, sizes_G)


def _group(score_P: Vectors, group_P: Ints) -> NDArray[np.uint64]:
    """Return integers that sort by falling group, then by rising score."""
    keys_P = make_keys(score_P, group_P)
    return (keys_P << np.uint64(32)) | (keys_P >> np.uint64(32))


SMALLEST = 4_096
"""Rows from which the first pass pays."""

FEW_QUERIES = 8
"""Up to so many queries at once each goes through the whole corpus in one product."""

_QUERIES = 512  # queries that go through the corpus together; their bytes and one block's products fit in the processor's cache
_PEAK_ROWS = 64  # rows of which the largest product stands for all when the first candidates of a single query are chosen
_NEVER = np.iinfo(np.int32).min


class ExactIndex:
    """Vectors ready to be searched exactly by cosine or dot product.

    >>> index = ExactIndex(np.array([[0, 1], [2, 0], [1, 0]]))
    >>> scores, indices = index.search([1, 0], k=2)
    >>> scores.tolist(), indices.tolist()
    ([[1.0, 1.0]], [[1, 2]])
    """

    def __init__(self, corpus: NDArray[Any], *, metric: Metric = "cosine") -> None:
        check_metric(metric)
        found = np.atleast_2d(np.asanyarray(corpus))
        if metric not in ("cosine", "dot"):
            raise UsageError(f"metric {metric}: an exact index knows cosine and dot\n  use top_k for the others")
        if found.ndim != 2 or found.dtype.kind not in "fiu" or len(found) > LARGEST_INDEX:
            raise UsageError(
                f"corpus: found shape {found.shape} of {found.dtype}; expected numbers of shape (m, d), at most {LARGEST_INDEX:,} rows"
            )
        self.metric: Metric = metric
        self._corpus = found
        self._rows = round_rows(found, metric) if len(found) >= SMALLEST and found.shape[1] and is_available() else None

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._corpus)

    def search(
        self, queries: ArrayLike, *, k: int, threads: int | None = None, among_M: NDArray[np.bool_] | None = None
    ) -> tuple[Vectors, Ints]:
        """Return the k best rows of each query: scores (n, k) float32 and indices (n, k) int64, best first, lower index first on ties.

        `among_M` says which rows may be answers, at least k of them; it is for few queries.
        """
        queries_ND = to_rows(queries, "queries")
        check_same_dimension(queries_ND, self._corpus, "queries", "corpus")
        if self._rows is None or not len(queries_ND) or k < 1 or 4 * k > len(self):
            return top_k(queries_ND, self._corpus, k=k, metric=self.metric)
        queries_ND = prepare_rows(queries_ND, self.metric)
        if among_M is not None or len(queries_ND) <= FEW_QUERIES:
            keys_NK = np.stack([self._find_keys_of_one(query_D, k, self._rows, among_M) for query_D in queries_ND])
            return read_scores(keys_NK), read_indices(keys_NK)
        threads = threads or usable_cores()
        group = min(_QUERIES, max(64, -(-len(queries_ND) // threads)))
        walks = [Walk(self._corpus, self._rows, queries_ND[at : at + group], self.metric) for at in range(0, len(queries_ND), group)]
        if threads > 1 and len(walks) > 1:
            with ThreadPoolExecutor(threads) as pool:
                keys_NK = np.concatenate(list(pool.map(lambda walk: walk.best(k), walks)))
        else:
            keys_NK = np.concatenate([walk.best(k) for walk in walks])
        return read_scores(keys_NK), read_indices(keys_NK)

    def prepare(self) -> None:
        """Lay the corpus out for few queries now, and not at the first of them."""
        if self._rows is not None:
            _ = self._multiply_corpus

    @cached_property
    def _multiply_corpus(self) -> Product:
        """The product of queries with all rows; the corpus is laid out for it at its first use."""
        assert self._rows is not None  # the caller has looked
        return make_product(_shift(self._rows.bytes_MD, np.int8).T)

    def _find_keys_of_one(self, query_D: Vectors, k: int, rows: CoarseRows, among_M: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
        """Return the k best keys of one query, best first."""
        walk = Walk(self._corpus, rows, query_D[None], self.metric)
        coarse = round_queries(walk.queries_ND, rows.steps)
        products_M = self._multiply_corpus(_shift(coarse.bytes_DN.T, np.uint8))[0]
        if among_M is not None:
            products_M[~among_M] = _NEVER
        first = _find_promising(products_M, k)
        most = max(BLOCK, _CROWDED * len(products_M))
        best = TopKBuffer(1, k)
        if len(first) <= most:
            walk.compete(best, np.zeros_like(first), first)
            survivors = np.flatnonzero(products_M > coarse.least_of_all(best.floor_N, rows))
            if len(survivors) <= most:
                reach_P = coarse.at_most(products_M[survivors], np.zeros_like(survivors), survivors, rows)
                rest = np.setdiff1d(survivors[reach_P >= best.floor_N[0]], first, assume_unique=True)
                walk.compete(best, np.zeros_like(rest), rest)
                return best.answer().reshape(-1)
        return walk.best_in_float(k, among_M).reshape(-1)


def _shift(bytes_MD: NDArray[Any], to: type[Any]) -> NDArray[Any]:
    """Move bytes that count from ZERO to such as count from 0, or the other way."""
    return np.asarray(np.ascontiguousarray(bytes_MD).view(to) ^ np.array(ZERO, np.uint8).view(to))


def _find_promising(products_M: NDArray[np.int32], k: int) -> Ints:
    """Return at least k rows with large products, in much less time than sorting takes."""
    peaks = np.maximum.reduceat(products_M, np.arange(0, len(products_M), _PEAK_ROWS))
    among = peaks if len(peaks) > k else products_M
    least = max(np.partition(among, len(among) - k)[len(among) - k], _NEVER + 1)
    return np.flatnonzero(products_M >= least)
