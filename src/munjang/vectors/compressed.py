"""float32 queries and a compressed corpus → for each query its k best rows.

The queries stay float32, only the corpus is compressed. int8 and uint8 rows are decoded block by block and searched exactly as they are.
One-bit rows are ranked by how many bits differ from the query's; the best k × multiplier of them are scored again with better vectors
if there are any, otherwise with the float query against the ±1 bits. How vectors are compressed is `quantize`'s matter.

Shapes: N queries, M corpus rows, D dimensions, B = ⌈D/8⌉ bytes, C candidates, K answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import UsageError
from munjang.types import Ints, Metric, Vectors
from munjang.vectors.quantize import Ranges, dequantize, fitting_ranges, quantize
from munjang.vectors.similarity import BLOCK, as_rows, check_metric, check_same_dimension, fill_scores, prepared, similarity_pairwise
from munjang.vectors.topk import select_top

RowsOf = Callable[[Ints], NDArray[Any]]
"""Fetch the vectors of these corpus rows, shape (len(indices), d): from disk, from a store."""

Bytes = NDArray[np.uint8]

_RESCORED = 2**22  # numbers fetched at once for scoring again


def hamming(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int32]:
    """Return in how many bits every row of a differs from every row of b, shape (n, m); rows are binary or ubinary vectors.

    >>> hamming(np.array([[0b101]], dtype=np.uint8), np.array([[0b100], [0b010]], dtype=np.uint8)).tolist()
    [[1, 3]]
    """
    a_NB, b_MB = _as_bits(a, "a"), _as_bits(b, "b")
    check_same_dimension(a_NB, b_MB, "a", "b")
    out_NM = np.empty((len(a_NB), len(b_MB)), dtype=np.int32)
    for start in range(0, len(b_MB), BLOCK):
        out_NM[:, start : start + BLOCK] = _differing_bits(_as_words(a_NB), _as_words(b_MB[start : start + BLOCK]))
    return out_NM


def top_k_binary(
    queries: ArrayLike,
    corpus: NDArray[Any],
    *,
    k: int,
    rescore_vectors: NDArray[Any] | RowsOf | None = None,
    ranges: Ranges | None = None,
    multiplier: int = 4,
    metric: Metric = "cosine",
    block: int = BLOCK,
) -> tuple[Vectors, Ints]:
    """Return scores (n, k) float32 and indices (n, k) int64 of the best rows of a binary or ubinary corpus, best first.

    `rescore_vectors` are the corpus in a better precision (float32, float16, or int8/uint8 with their `ranges`), as an array, a memmap, or
    a function that fetches rows; without them the score is that of the query with the ±1 bits, a unit vector.
    """
    check_metric(metric)
    queries_ND, corpus_MB = as_rows(queries, "queries"), _as_bits(corpus, "corpus")
    bits_NB = quantize(queries_ND, "ubinary")
    check_same_dimension(bits_NB, corpus_MB, "the queries' bits", "corpus")
    if k < 1 or multiplier < 1:
        raise UsageError(f"k is {k} and multiplier is {multiplier}; expected at least 1 of each")
    words_NW = _as_words(bits_NB)

    def fill(rows: slice, columns: slice, out_NM: Vectors) -> None:
        np.multiply(_differing_bits(words_NW[rows], _as_words(corpus_MB[columns])), np.float32(-1), out=out_NM)

    _, candidates_NC = select_top(fill, shape=(len(queries_ND), len(corpus_MB)), k=k * multiplier, block=block)
    candidates_NC.sort(axis=1)  # so that equal scores come out by lower index
    rows_of = _rows_source(corpus_MB, queries_ND.shape[1], rescore_vectors, ranges)
    return _scored_again(queries_ND, candidates_NC, rows_of, k=k, metric=metric)


def top_k_int8(
    queries: ArrayLike, corpus: NDArray[Any], *, k: int, ranges: Ranges | None = None, metric: Metric = "cosine", block: int = BLOCK
) -> tuple[Vectors, Ints]:
    """Return scores (n, k) float32 and indices (n, k) int64 of the best rows of an int8 or uint8 corpus, best first.

    Pass the `ranges` the corpus was quantised with; without, those for unit vectors are taken, as `quantize` does.
    """
    check_metric(metric)
    queries_ND, corpus_MD = as_rows(queries, "queries"), np.atleast_2d(np.asanyarray(corpus))
    if corpus_MD.ndim != 2 or corpus_MD.dtype not in (np.int8, np.uint8):
        raise UsageError(f"corpus: found shape {corpus_MD.shape} of {corpus_MD.dtype}; expected int8 or uint8 of shape (m, d)")
    check_same_dimension(queries_ND, corpus_MD, "queries", "corpus")
    ranges = fitting_ranges(ranges, corpus_MD.shape[1])
    queries_ND = prepared(queries_ND, metric)

    def fill(rows: slice, columns: slice, out_NM: Vectors) -> None:
        fill_scores(queries_ND[rows], prepared(dequantize(corpus_MD[columns], ranges=ranges), metric), metric=metric, out_NM=out_NM)

    return select_top(fill, shape=(len(queries_ND), len(corpus_MD)), k=k, block=block)


def _scored_again(queries_ND: Vectors, candidates_NC: Ints, rows_of: RowsOf, *, k: int, metric: Metric) -> tuple[Vectors, Ints]:
    """Score each query's candidates with better vectors and return the k best."""
    n, c = candidates_NC.shape
    d = queries_ND.shape[1]
    k = min(k, c)
    scores_NC = np.empty((n, c), dtype=np.float32)
    group = max(1, _RESCORED // max(1, c * d))
    for start in range(0, n, group):
        part_NC = candidates_NC[start : start + group]
        wanted, place = np.unique(part_NC, return_inverse=True)
        rows_UD = as_rows(rows_of(wanted), "rescore_vectors")
        if rows_UD.shape != (len(wanted), d):
            raise UsageError(f"rescore_vectors: found shape {rows_UD.shape} for {len(wanted)} rows; expected {(len(wanted), d)}")
        twin_ND = np.repeat(queries_ND[start : start + group], c, axis=0)
        scores_NC[start : start + group] = similarity_pairwise(twin_ND, rows_UD[place.reshape(-1)], metric=metric).reshape(len(part_NC), c)
    order_NK = np.argsort(-scores_NC, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores_NC, order_NK, axis=1), np.take_along_axis(candidates_NC, order_NK, axis=1)


def _rows_source(corpus_MB: Bytes, dimension: int, rescore_vectors: NDArray[Any] | RowsOf | None, ranges: Ranges | None) -> RowsOf:
    if rescore_vectors is None:
        return lambda wanted: _signs(corpus_MB[wanted], dimension)
    if callable(rescore_vectors):
        fetch = rescore_vectors
        return lambda wanted: _decoded(fetch(wanted), ranges)
    vectors = np.asanyarray(rescore_vectors)
    if vectors.shape != (len(corpus_MB), dimension):
        raise UsageError(f"rescore_vectors: found shape {vectors.shape}; expected {(len(corpus_MB), dimension)}, one row per corpus row")
    return lambda wanted: _decoded(vectors[wanted], ranges)


def _decoded(rows: NDArray[Any], ranges: Ranges | None) -> Vectors:
    rows = np.asarray(rows)
    return np.asarray(rows, dtype=np.float32) if rows.dtype.kind == "f" else dequantize(rows, ranges=ranges)


def _signs(bits_MB: Bytes, dimension: int) -> Vectors:
    """Return the ±1/√d vectors that the bits stand for."""
    ones_MD = np.unpackbits(bits_MB, axis=1, count=dimension).astype(np.float32)
    return np.asarray((ones_MD * 2 - 1) / np.float32(max(1, dimension) ** 0.5), dtype=np.float32)


def _as_bits(vectors: NDArray[Any], name: str) -> Bytes:
    """Return binary or ubinary rows as unsigned bytes; int8 bytes are the unsigned ones less 128."""
    found = np.atleast_2d(np.asanyarray(vectors))
    if found.ndim != 2 or found.dtype not in (np.int8, np.uint8):
        raise UsageError(f"{name}: found shape {found.shape} of {found.dtype}; expected the bytes of quantize(…, 'ubinary') or 'binary'")
    return found if found.dtype == np.uint8 else found.view(np.uint8) ^ np.uint8(128)


def _as_words(bits_NB: Bytes) -> NDArray[np.uint64]:
    """Return the bits 64 to a word, padded with zeros, which never differ."""
    words = -(-bits_NB.shape[1] // 8)
    padded = np.zeros((len(bits_NB), words * 8), dtype=np.uint8)
    padded[:, : bits_NB.shape[1]] = bits_NB
    return padded.view(np.uint64)


def _differing_bits(a_NW: NDArray[np.uint64], b_MW: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Count bit differences a row and a word at a time, so that every intermediate stays in the processor's cache."""
    b_WM = np.ascontiguousarray(b_MW.T)
    count_NM = np.zeros((len(a_NW), len(b_MW)), dtype=np.uint16)
    differing, ones = np.empty(len(b_MW), dtype=np.uint64), np.empty(len(b_MW), dtype=np.uint8)
    for a_W, count_M in zip(a_NW, count_NM, strict=True):
        for word, b_M in zip(a_W, b_WM, strict=True):
            np.bitwise_xor(b_M, word, out=differing)
            np.bitwise_count(differing, out=ones)
            count_M += ones
    return count_NM
