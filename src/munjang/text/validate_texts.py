"""What a caller hands over as texts → texts, or an error that says what was found and what to do.

Lists, tuples, iterators, arrays and columns of data frames are texts, if all they hold are. One text, a mapping, a set, a data frame, bytes
and numbers are refused: going through them would give characters, keys, column names or an arbitrary order. Iterators are gone through
only as far as texts are asked for, so that a stream stays one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Set
from typing import Any

from munjang.errors import UsageError, quote
from munjang.text.records import first_repeated

_ROWS = 1_024
"""Rows that are turned into Python values at once."""


def is_table(value: object) -> bool:
    """Say whether a value is a data frame or a table: of pandas, polars, pyarrow, Dask or their like."""
    return hasattr(type(value), "columns") and hasattr(type(value), "__getitem__")


def is_missing(value: object) -> bool:
    """Say whether a cell holds nothing: None, NaN, or the NA and NaT of pandas."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def list_columns(table: Any) -> list[str]:
    """Return the names of a table's columns; one that stands there twice is refused."""
    if not hasattr(table, "shape") or not isinstance(table.shape[0], int):
        raise UsageError(f"found a {type(table).__name__}, which is not computed yet\n  compute or collect it first")
    names = [str(name) for name in (table.column_names if hasattr(type(table), "column_names") else table.columns)]
    twice = first_repeated(names)
    if twice is not None:
        raise UsageError(f"the {type(table).__name__} has the column {quote(twice)} twice, expected names that differ")
    return names


def read_table_rows(table: Any) -> Iterator[dict[str, Any]]:
    """Yield each row as a mapping; a pandas index that is called "id" is a column of that name, unless there is one."""
    names = list_columns(table)
    index: Any = getattr(table, "index", None)
    labelled = getattr(index, "name", None) == "id" and "id" not in names
    for start in range(0, table.shape[0], _ROWS):
        columns = [[None if is_missing(cell) else cell for cell in column] for column in _read_block(table, start, len(names))]
        if labelled:
            columns.append(index[start : start + _ROWS].tolist())
        for cells in zip(*columns, strict=True):
            yield dict(zip((*names, "id") if labelled else names, cells, strict=True))


def read_series(series: Any) -> Iterator[dict[str, Any]] | None:
    """Yield the texts of a pandas Series whose index is called "id", each with its label; None for any other value."""
    index: Any = getattr(series, "index", None)
    if is_table(series) or getattr(index, "name", None) != "id" or not hasattr(series, "tolist"):
        return None
    return ({"id": label, "text": text} for label, text in zip(index.tolist(), series.tolist(), strict=True))


def read_cells(column: Any) -> list[Any] | None:
    """Return the Python values of an array, a Series or an Index of one dimension; None for any other value."""
    to_list = next((getattr(column, name) for name in ("tolist", "to_list", "to_pylist") if hasattr(type(column), name)), None)
    if to_list is None:
        return None
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape) != 1:
        raise UsageError(f"found a {type(column).__name__} of shape {tuple(shape)}, expected one dimension\n  choose one column of it")
    return list(to_list())


def _read_block(table: Any, start: int, width: int) -> list[list[Any]]:
    """Return the cells of some rows, column by column, as Python values."""
    if hasattr(type(table), "iloc"):
        part = table.iloc[start : start + _ROWS]
        return [part.iloc[:, place].tolist() for place in range(width)]
    part = table.slice(start, _ROWS)
    columns = part.iter_columns() if hasattr(type(part), "iter_columns") else part.columns
    return [read_cells(column) or [] for column in columns]


def validate_texts(texts: object, *, name: str = "texts") -> list[str]:
    """Return the texts as a list; `name` is what an error calls them.

    >>> validate_texts(("비가 온다", "It rains"))
    ['비가 온다', 'It rains']
    """
    return list(_check_all(validate_items(texts, name=name), name))


def stream_texts(texts: object, *, name: str = "texts") -> list[str] | Iterator[str]:
    """Return an iterator's texts as they come, anything else as a list."""
    return _check_all(texts, name) if isinstance(texts, Iterator) else validate_texts(texts, name=name)


def validate_text(text: object, *, name: str) -> str:
    """Return one text, or refuse what is none."""
    if not isinstance(text, str):
        raise UsageError(f"{name} is {_describe(text)}, expected one text (str)")
    return text


def validate_pairs(pairs: object, *, name: str = "pairs", start: int = 0) -> list[tuple[str, str]]:
    """Return pairs of texts; each may be a tuple, a list or a row of an array. `start` is the first one's number in an error."""
    if is_table(pairs):
        raise UsageError(f'{name} is a {type(pairs).__name__}, expected pairs of texts\n  list(zip(df["a"], df["b"])) makes them')
    shape = getattr(pairs, "shape", ())
    rows = pairs.tolist() if len(shape) == 2 and hasattr(pairs, "tolist") else validate_items(pairs, name=name)
    return [_check_pair(pair, f"{name}[{number}]") for number, pair in enumerate(rows, start)]


def validate_ids(ids: object, *, name: str = "ids") -> list[str]:
    """Return ids, in their order if they have one; unlike texts, they may come as a set."""
    return validate_texts(list(ids) if isinstance(ids, Set) else ids, name=name)


def validate_items(items: object, *, name: str, one: str = "text") -> Iterable[object]:
    """Return what can be gone through item by item without surprise, unchecked; `one` is what an item is called."""
    several = f"expected a list of {one}s"
    if isinstance(items, str):
        raise UsageError(f"{name} is one text, {several}\n  put it in a list")
    if isinstance(items, bytes | bytearray | memoryview):
        raise UsageError(f"{name} is {_describe(items)}, {several}\n  decode bytes first, such as with .decode('utf-8')")
    if isinstance(items, Mapping):
        raise UsageError(f"{name} is {_describe(items)}, {several}\n  give its values, list(mapping.values()), or put it in a list")
    if isinstance(items, Set) and not isinstance(items, KeysView):  # a dict's keys have an order
        raise UsageError(f"{name} is {_describe(items)}, whose order is arbitrary, {several}\n  give them an order, such as sorted(…)")
    if is_table(items):
        raise UsageError(f'{name} is {_describe(items)}, {several}\n  name the column that holds them, such as df["text"]')
    cells = read_cells(items)
    if cells is not None:
        return cells
    if isinstance(items, Iterable):
        return items
    raise UsageError(f"{name} is {_describe(items)}, {several}")


def _check_all(items: Iterable[object], name: str) -> Iterator[str]:
    for number, item in enumerate(items):
        if not isinstance(item, str):
            raise UsageError(f"{name}[{number}] is {_describe(item)}, expected a text (str){_advise(item)}")
        yield item


def _check_pair(pair: object, name: str) -> tuple[str, str]:
    if isinstance(pair, str | bytes | Mapping | Set) or not isinstance(pair, Iterable):
        alone = "\n  put a single pair into a list" if isinstance(pair, str) else ""
        raise UsageError(f"{name} is {_describe(pair)}, expected a pair of texts{alone}")
    texts = validate_texts(pair, name=name)
    if len(texts) != 2:
        raise UsageError(f"{name} has {len(texts)} texts, expected a pair of them")
    return texts[0], texts[1]


def _describe(value: object) -> str:
    """Say what a value is; of what may be private or long, only its type.

    >>> _describe(None), _describe(3), _describe({"a"})
    ('None', '3 (int)', 'a set')
    """
    if value is None:
        return "None"
    kind = type(value).__name__
    if kind == "bytes":
        return kind
    if is_missing(value):
        return f"missing ({value})"
    if isinstance(value, bool | int | float):
        return f"{quote(str(value))[1:-1]} ({kind})"
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _advise(item: object) -> str:
    if is_missing(item):
        return '\n  drop or fill what is missing first, such as with df.dropna(subset=["text"])'
    if isinstance(item, bytes | bytearray):
        return "\n  decode it first, such as with .decode('utf-8')"
    return ""
