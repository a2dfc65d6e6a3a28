"""Data frames and their columns, known by what they can do: pandas and polars are never imported, and need not be installed.

A table has columns and rows; a column is an array, a Series or an Index of one dimension. Out of a table come rows as mappings of Python
values: what a frame calls missing (NaN, NA, NaT) is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from munjang.errors import UsageError, shown

_ROWS = 1_024
"""Rows that are turned into Python values at once."""


def is_table(value: object) -> bool:
    """Say whether a value is a data frame or a table: of pandas, polars, pyarrow, Dask or their like."""
    return hasattr(type(value), "columns") and hasattr(type(value), "__getitem__")


def is_missing(value: object) -> bool:
    """Say whether a cell holds nothing: None, NaN, or the NA and NaT of pandas."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def column_names(table: Any) -> list[str]:
    """Return the names of a table's columns; one that stands there twice is refused."""
    if not hasattr(table, "shape") or not isinstance(table.shape[0], int):
        raise UsageError(f"found a {type(table).__name__}, whose rows are not there yet\n  compute or collect it first")
    names = [str(name) for name in (table.column_names if hasattr(type(table), "column_names") else table.columns)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the {type(table).__name__} has the column {shown(twice)} twice, expected names that differ")
    return names


def table_rows(table: Any) -> Iterator[dict[str, Any]]:
    """Yield each row as a mapping; a pandas index that is called "id" is a column of that name, unless there is one."""
    names = column_names(table)
    index: Any = getattr(table, "index", None)
    labelled = getattr(index, "name", None) == "id" and "id" not in names
    for start in range(0, table.shape[0], _ROWS):
        columns = [[None if is_missing(cell) else cell for cell in column] for column in _block(table, start, len(names))]
        if labelled:
            columns.append(index[start : start + _ROWS].tolist())
        for cells in zip(*columns, strict=True):
            yield dict(zip((*names, "id") if labelled else names, cells, strict=True))


def series_rows(series: Any) -> Iterator[dict[str, Any]] | None:
    """Yield the texts of a pandas Series whose index is called "id", each with its label; None for any other value."""
    index: Any = getattr(series, "index", None)
    if is_table(series) or getattr(index, "name", None) != "id" or not hasattr(series, "tolist"):
        return None
    return ({"id": label, "text": text} for label, text in zip(index.tolist(), series.tolist(), strict=True))


def cells_of(column: Any) -> list[Any] | None:
    """Return the Python values of an array, a Series or an Index of one dimension; None for any other value."""
    to_list = next((getattr(column, name) for name in ("tolist", "to_list", "to_pylist") if hasattr(type(column), name)), None)
    if to_list is None:
        return None
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape) != 1:
        raise UsageError(f"found a {type(column).__name__} of shape {tuple(shape)}, expected one dimension\n  choose one column of it")
    return list(to_list())


def _block(table: Any, start: int, width: int) -> list[list[Any]]:
    """Return the cells of some rows, column by column, as Python values."""
    if hasattr(type(table), "iloc"):
        part = table.iloc[start : start + _ROWS]
        return [part.iloc[:, place].tolist() for place in range(width)]
    part = table.slice(start, _ROWS)
    columns = part.iter_columns() if hasattr(type(part), "iter_columns") else part.columns
    return [cells_of(column) or [] for column in columns]
