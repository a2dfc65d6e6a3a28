"""Rows of numbers → how alike they are.

All pairs (`similarity`) or row by row (`similarity_pairwise`), larger is more alike under every metric: cosine, dot, and the negative
Euclidean and Manhattan distances. A zero vector has cosine 0 with everything, never NaN. All pairs are computed in square blocks, so
beyond the answer only a block's worth of memory is used. Choosing the best pairs is left to `topk`.

Shapes: N rows of a, M rows of b, D dimensions.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError, UsageError, quote
from munjang.types import Metric, Vectors

BLOCK = 4096
"""Rows of b scored at once."""

_UNIT_TOLERANCE = 1e-6  # a squared norm this near to 1 is float32 rounding, so the row is left as it is
_SAFE_SQUARES = (1e-24, 1e30)  # outside, float32 squares lose digits or overflow, and the norm is taken in float64
_LARGEST_INVERSE = 1e30  # beyond, 1/|v| does not fit float32
_CLOSE = 1e-2  # squared distances below this share of |b|² have lost digits to cancellation
_SCRATCH = 2**18  # numbers held at once where differences are formed one by one


def similarity(a: ArrayLike, b: ArrayLike, *, metric: Metric = "cosine", block: int = BLOCK) -> Vectors:
    """Return the (n, m) float32 similarities of every row of a with every row of b.

    >>> similarity([[1, 0], [0, 2]], [3, 0]).tolist()
    [[1.0], [0.0]]
    """
    a_ND, b_MD = _check_sets(a, b, metric)
    check_block(block)
    out_NM = np.empty((len(a_ND), len(b_MD)), dtype=np.float32)
    for top in range(0, len(a_ND), block):
        part_ND = prepare_rows(a_ND[top : top + block], metric)
        for left in range(0, len(b_MD), block):
            tile = out_NM[top : top + block, left : left + block]
            fill_scores(part_ND, prepare_rows(b_MD[left : left + block], metric), metric=metric, out_NM=tile)
    return out_NM


def similarity_pairwise(a: ArrayLike, b: ArrayLike, *, metric: Metric = "cosine") -> Vectors:
    """Return the (n,) float32 similarities of each row of a with the same row of b.

    >>> similarity_pairwise([[1, 0], [0, 2]], [[3, 0], [1, 0]]).tolist()
    [1.0, 0.0]
    """
    a_ND, b_ND = _check_sets(a, b, metric)
    if len(a_ND) != len(b_ND):
        raise UsageError(
            f"pairwise similarity: a has shape {a_ND.shape}, b has shape {b_ND.shape}; expected as many rows in each\n"
            "  use similarity(a, b) to compare every row with every row"
        )
    out_N = np.empty(len(a_ND), dtype=np.float32)
    step = max(1, _SCRATCH // max(1, a_ND.shape[1]))
    for start in range(0, len(a_ND), step):
        rows = slice(start, start + step)
        out_N[rows] = _score_pairs(prepare_rows(a_ND[rows], metric), prepare_rows(b_ND[rows], metric), metric)
    return out_N


def normalize(vectors: ArrayLike) -> Vectors:
    """Return the vectors scaled to length 1; zero vectors stay zero, and unit vectors come back bit for bit.

    >>> normalize([[0, 4], [0, 0]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    found = np.asarray(vectors)
    unit_ND = prepare_rows(to_rows(found, "vectors"), "cosine")
    if found.ndim == 1:
        unit_ND = unit_ND[0]
    return unit_ND.copy() if np.shares_memory(unit_ND, found) else unit_ND


def to_rows(vectors: ArrayLike, name: str) -> Vectors:
    """Return the vectors as finite float32 rows, a single vector as one row; refuse any other shape."""
    try:
        found = np.asarray(vectors)
    except ValueError:  # rows of different lengths
        raise UsageError(f"{name}: found rows of different lengths; expected numbers of shape (n, d) or (d,)") from None
    if found.ndim not in (1, 2) or found.dtype.kind not in "fiu":
        advice = "\n  texts become vectors with encode" if found.dtype.kind in "UO" else ""
        raise UsageError(f"{name}: found shape {found.shape} of {found.dtype}; expected numbers of shape (n, d) or (d,){advice}")
    rows_ND = np.ascontiguousarray(np.atleast_2d(found), dtype=np.float32)
    if not _are_all_finite(rows_ND):
        bad = int(np.flatnonzero(~np.isfinite(rows_ND).all(axis=1))[0])
        raise InputError(
            f"{name} row {bad}: holds NaN or infinity; expected finite float32 numbers\n  encode that text again, or leave it out"
        )
    return rows_ND


def check_metric(metric: str) -> None:
    """Refuse a metric that does not exist, and name those that do."""
    if metric not in get_args(Metric):
        raise UsageError(f"metric {quote(str(metric))} is unknown\n  choose one of {', '.join(get_args(Metric))}")


def check_block(block: int) -> None:
    """Refuse a block without rows."""
    if block < 1:
        raise UsageError(f"block is {block}; expected at least 1 row")


def prepare_rows(rows_ND: Vectors, metric: Metric) -> Vectors:
    """Return what `fill_scores` expects for this metric: unit rows for cosine, the rows themselves otherwise."""
    if metric != "cosine" or not rows_ND.size:
        return rows_ND
    inverse_N = _compute_inverse_norms(rows_ND)
    if (inverse_N == 1).all():
        return rows_ND
    if inverse_N.max() > _LARGEST_INVERSE:
        return np.asarray(rows_ND * inverse_N[:, None], dtype=np.float32)
    return np.asarray(rows_ND * inverse_N.astype(np.float32)[:, None], dtype=np.float32)


def fill_scores(a_ND: Vectors, b_MD: Vectors, *, metric: Metric, out_NM: Vectors) -> None:
    """Write the similarity of every prepared row of a with every prepared row of b into `out_NM`."""
    if metric == "manhattan":
        _fill_manhattan(a_ND, b_MD, out_NM)
        return
    np.matmul(a_ND, b_MD.T, out=out_NM)
    if metric == "euclidean":
        _convert_to_euclidean(a_ND, b_MD, out_NM)


def _check_sets(a: ArrayLike, b: ArrayLike, metric: str) -> tuple[Vectors, Vectors]:
    check_metric(metric)
    a_ND, b_MD = to_rows(a, "a"), to_rows(b, "b")
    check_same_dimension(a_ND, b_MD, "a", "b")
    return a_ND, b_MD


def check_same_dimension(a: NDArray[np.generic], b: NDArray[np.generic], a_name: str, b_name: str) -> None:
    """Refuse two sets of vectors of different lengths, and show both shapes."""
    if a.shape[-1] != b.shape[-1]:
        raise UsageError(
            f"{a_name} has shape {a.shape}, {b_name} has shape {b.shape}; expected the same last dimension\n"
            "  vectors can only be compared when they come from the same model, cut to the same length"
        )


def _are_all_finite(rows_ND: Vectors) -> bool:
    return not rows_ND.size or bool(np.isfinite(rows_ND.max()) and np.isfinite(rows_ND.min()))


def _compute_inverse_norms(rows_ND: Vectors) -> NDArray[np.float64]:
    """Return 1/|row|, exactly 1 for rows that are unit vectors already, and 0 for zero rows."""
    with np.errstate(over="ignore", under="ignore"):
        squares_N = np.einsum("nd,nd->n", rows_ND, rows_ND).astype(np.float64)
    low, high = _SAFE_SQUARES
    odd_N = ~((squares_N > low) & (squares_N < high))
    if odd_N.any():
        exact_ND = rows_ND[odd_N].astype(np.float64)
        squares_N[odd_N] = np.einsum("nd,nd->n", exact_ND, exact_ND)
    inverse_N: NDArray[np.float64] = np.zeros(len(squares_N))
    np.divide(1, np.sqrt(squares_N), out=inverse_N, where=squares_N > 0)
    inverse_N[np.abs(squares_N - 1) < _UNIT_TOLERANCE] = 1
    return inverse_N


def _convert_to_euclidean(a_ND: Vectors, b_MD: Vectors, out_NM: Vectors) -> None:
    """Turn dot products into negative distances; pairs too close for |a|² + |b|² − 2ab are measured again by their difference."""
    b_square_M = np.einsum("md,md->m", b_MD, b_MD)
    out_NM *= -2
    out_NM += np.einsum("nd,nd->n", a_ND, a_ND)[:, None]
    out_NM += b_square_M
    rows, columns = np.nonzero(out_NM < b_square_M * np.float32(_CLOSE))
    np.maximum(out_NM, 0, out=out_NM)
    np.sqrt(out_NM, out=out_NM)
    np.negative(out_NM, out=out_NM)
    step = max(1, _SCRATCH // max(1, a_ND.shape[1]))
    for start in range(0, len(rows), step):
        row, column = rows[start : start + step], columns[start : start + step]
        out_NM[row, column] = _score_pairs(a_ND[row], b_MD[column], "euclidean")


def _fill_manhattan(a_ND: Vectors, b_MD: Vectors, out_NM: Vectors) -> None:
    step = max(1, _SCRATCH // 4 // max(1, a_ND.shape[1]))
    scratch = np.empty((min(step, len(b_MD)), a_ND.shape[1]), dtype=np.float32)
    for left in range(0, len(b_MD), step):
        part_MD = b_MD[left : left + step]
        gap_MD = scratch[: len(part_MD)]
        for row, a_D in enumerate(a_ND):
            np.subtract(part_MD, a_D, out=gap_MD)
            np.abs(gap_MD, out=gap_MD)
            np.sum(gap_MD, axis=1, out=out_NM[row, left : left + step])
    np.negative(out_NM, out=out_NM)


def _score_pairs(a_ND: Vectors, b_ND: Vectors, metric: Metric) -> Vectors:
    if metric in ("cosine", "dot"):
        return np.asarray(np.einsum("nd,nd->n", a_ND, b_ND), dtype=np.float32)
    gap_ND = a_ND - b_ND
    if metric == "manhattan":
        return np.asarray(-np.abs(gap_ND).sum(axis=1), dtype=np.float32)
    return np.asarray(-np.sqrt(np.einsum("nd,nd->n", gap_ND, gap_ND)), dtype=np.float32)
