"""Two partitions of the same rows (gold classes, found clusters) → V-measure, homogeneity, completeness, ARI, NMI, purity.

All but purity equal scikit-learn's, its rules for one class or one cluster included (homogeneity is 1 if there is one class, completeness
is 1 if there is one cluster). Without rows every answer is nan. Labels may be anything hashable; a cluster −1 (outliers) is one cluster
like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.evaluate.inputs import FloatArray, IntArray, same_length


@dataclass(frozen=True)
class PartitionScores:
    """How well found clusters agree with gold classes."""

    v_measure: float
    homogeneity: float
    completeness: float
    ari: float
    nmi: float
    purity: float


def partition_scores(gold: Sequence[Any], found: Sequence[Any]) -> PartitionScores:
    """Return all six agreements of `found` with `gold`.

    >>> partition_scores(["x", "x", "y"], [1, 1, 0]).v_measure
    1.0
    """
    same_length(gold, found, names=("classes", "clusters"))
    if not len(gold):
        return PartitionScores(*[math.nan] * 6)
    table = _table(gold, found)
    n = int(table.sum())
    h_gold, h_found, shared = _entropy(table.sum(1)), _entropy(table.sum(0)), _mutual_information(table)
    homogeneity = shared / h_gold if h_gold else 1.0
    completeness = shared / h_found if h_found else 1.0
    together = homogeneity + completeness
    return PartitionScores(
        v_measure=2 * homogeneity * completeness / together if together else 0.0,
        homogeneity=homogeneity,
        completeness=completeness,
        ari=_adjusted_rand(table, n),
        nmi=_normalised(shared, h_gold, h_found),
        purity=float(table.max(axis=0).sum() / n),
    )


def _table(gold: Sequence[Any], found: Sequence[Any]) -> IntArray:
    """How many rows have class i and cluster j."""
    rows, columns = _codes(gold), _codes(found)
    table: IntArray = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def _codes(labels: Sequence[Any]) -> IntArray:
    seen: dict[Any, int] = {}
    return np.asarray([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def _entropy(counts: IntArray) -> float:
    if counts.size == 1:
        return 0.0
    share = counts / counts.sum()
    return float(-(share * np.log(share)).sum())


def _mutual_information(table: IntArray) -> float:
    n = table.sum()
    i, j = np.nonzero(table)
    joint: FloatArray = table[i, j] / n
    outer = table.sum(1)[i].astype(np.float64) * table.sum(0)[j] / (float(n) * float(n))
    total = float((joint * (np.log(joint) - np.log(outer))).sum())
    return total if abs(total) > np.finfo(np.float64).eps else 0.0


def _normalised(shared: float, h_gold: float, h_found: float) -> float:
    if h_gold == 0.0 and h_found == 0.0:
        return 1.0
    return 2 * shared / (h_gold + h_found)


def _adjusted_rand(table: IntArray, n: int) -> float:
    """Pairs of rows that both partitions treat alike, against chance. Python integers: the products overflow 64 bits on large data."""
    squares = int((table**2).sum())
    rows, columns = int((table.sum(1) ** 2).sum()), int((table.sum(0) ** 2).sum())
    tp, fp, fn = squares - n, columns - squares, rows - squares
    tn = n * n - rows - columns + squares
    if fn == 0 and fp == 0:
        return 1.0
    return 2.0 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))
