"""What a metric accepts: finite numbers, lists of equal length, labels of 0 and 1. Everything else is an `InputError` that says so.

Comes in: whatever the caller holds (lists, arrays). Goes out: float64 or int64 arrays that the metrics need not check again. Rows with
texts are told by the fields they have; tuples and data frames are refused, since nobody could tell which of their columns is which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError, UsageError
from munjang.text.validate_texts import validate_items

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RowKind = TypeVar("RowKind")


def check_rows(rows: object, kind: type[RowKind], *, name: str) -> list[RowKind]:
    """Return rows that have the fields of `kind`, a data class of `datasets.rows`."""
    needed = [each.name for each in fields(cast("Any", kind)) if each.default is MISSING]
    made = []
    for number, row in enumerate(validate_items(rows, name=name, one=kind.__name__)):
        if any(not hasattr(row, field) for field in needed):
            wanted = f"{kind.__name__}({', '.join(needed)})"
            raise UsageError(f"{name}[{number}] is a {type(row).__name__}, expected a {wanted} of munjang.data")
        made.append(cast("RowKind", row))
    return made


def check_numbers(values: ArrayLike, *, name: str) -> FloatArray:
    """Return `values` as finite float64 in one dimension.

    >>> check_numbers([1, 2], name="scores")
    array([1., 2.])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name}: an array of shape {array.shape}, expected one number per row")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(f"{name}: {array[bad[0]]} at row {bad[0]} ({bad.size} in all), expected finite numbers\n  look for empty texts")
    return array


def check_aligned(a: ArrayLike, b: ArrayLike, *, names: tuple[str, str]) -> tuple[FloatArray, FloatArray]:
    """Return two checked arrays of one length."""
    left, right = check_numbers(a, name=names[0]), check_numbers(b, name=names[1])
    check_same_length(left, right, names=names)
    return left, right


def check_same_length(a: Sequence[Any] | NDArray[Any], b: Sequence[Any] | NDArray[Any], *, names: tuple[str, str]) -> None:
    """Refuse two lists of different length."""
    if len(a) != len(b):
        raise InputError(f"{len(a)} {names[0]} against {len(b)} {names[1]}, expected one for each")


def check_binary(labels: ArrayLike, *, name: str = "labels") -> IntArray:
    """Return labels as 0 and 1, and refuse any other value.

    >>> check_binary([True, False])
    array([1, 0])
    """
    array = check_numbers(labels, name=name)
    bad = np.flatnonzero((array != 0) & (array != 1))
    if bad.size:
        found = f"{array[bad[0]]:g} at row {bad[0]} ({bad.size} in all)"
        raise InputError(f"{name}: {found}, expected 0 or 1\n  cut graded labels at a threshold first")
    return array.astype(np.int64)


def refuse_flat_gold(gold: Sequence[float]) -> None:
    """Refuse gold scores that nothing can correlate with: fewer than two, or all the same."""
    if len(gold) < 2:
        raise InputError(f"{len(gold)} pairs with a score, expected at least two")
    if min(gold) == max(gold):
        raise InputError(f"all {len(gold):,} gold scores are {gold[0]:g}, expected different ones\n  there is no order to agree with")
