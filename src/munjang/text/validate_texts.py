"""What a caller hands over as texts → texts, or an error that says what was found and what to do.

Lists, tuples, iterators, arrays and columns of data frames are texts, if all they hold are. One text, a mapping, a set, a data frame, bytes
and numbers are refused: going through them would give characters, keys, column names or an arbitrary order. Iterators are gone through
only as far as texts are asked for, so that a stream stays one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Set

from munjang.errors import UsageError, shown
from munjang.text.data_frames import cells_of, is_missing, is_table


def validate_texts(texts: object, *, name: str = "texts") -> list[str]:
    """Return the texts as a list; `name` is what an error calls them.

    >>> validate_texts(("비가 온다", "It rains"))
    ['비가 온다', 'It rains']
    """
    return list(_checked(validate_items(texts, name=name), name))


def stream_texts(texts: object, *, name: str = "texts") -> list[str] | Iterator[str]:
    """Return an iterator's texts as they come, anything else as a list."""
    return _checked(texts, name) if isinstance(texts, Iterator) else validate_texts(texts, name=name)


def validate_text(text: object, *, name: str) -> str:
    """Return one text, or refuse what is none."""
    if not isinstance(text, str):
        raise UsageError(f"{name} is {_described(text)}, expected one text (str)")
    return text


def validate_pairs(pairs: object, *, name: str = "pairs") -> list[tuple[str, str]]:
    """Return pairs of texts; each may be a tuple, a list or a row of an array."""
    if is_table(pairs):
        raise UsageError(f'{name} is a {type(pairs).__name__}, expected pairs of texts\n  list(zip(df["a"], df["b"])) makes them')
    shape = getattr(pairs, "shape", ())
    rows = pairs.tolist() if len(shape) == 2 and hasattr(pairs, "tolist") else validate_items(pairs, name=name)
    return [_pair(pair, f"{name}[{number}]") for number, pair in enumerate(rows)]


def validate_ids(ids: object, *, name: str = "ids") -> list[str]:
    """Return ids, in their order if they have one; unlike texts, they may come as a set."""
    return validate_texts(list(ids) if isinstance(ids, Set) else ids, name=name)


def validate_items(items: object, *, name: str, one: str = "text") -> Iterable[object]:
    """Return what can be gone through item by item without surprise, unchecked; `one` is what an item is called."""
    several = f"expected a list of {one}s"
    if isinstance(items, str):
        raise UsageError(f"{name} is one text, {several}\n  put it into a list")
    if isinstance(items, bytes | bytearray | memoryview):
        raise UsageError(f"{name} is {_described(items)}, {several}\n  decode bytes first, such as with .decode('utf-8')")
    if isinstance(items, Mapping):
        raise UsageError(f"{name} is {_described(items)}, {several}\n  give its values, list(mapping.values()), or put it into a list")
    if isinstance(items, Set) and not isinstance(items, KeysView):  # a dict's keys have an order
        raise UsageError(f"{name} is {_described(items)}, whose order is arbitrary, {several}\n  give them an order, such as sorted(…)")
    if is_table(items):
        raise UsageError(f'{name} is {_described(items)}, {several}\n  name the column that holds them, such as df["text"]')
    cells = cells_of(items)
    if cells is not None:
        return cells
    if isinstance(items, Iterable):
        return items
    raise UsageError(f"{name} is {_described(items)}, {several}")


def _checked(items: Iterable[object], name: str) -> Iterator[str]:
    for number, item in enumerate(items):
        if not isinstance(item, str):
            raise UsageError(f"{name}[{number}] is {_described(item)}, expected a text (str){_advice(item)}")
        yield item


def _pair(pair: object, name: str) -> tuple[str, str]:
    if isinstance(pair, str | bytes | Mapping | Set) or not isinstance(pair, Iterable):
        alone = "\n  put a single pair into a list" if isinstance(pair, str) else ""
        raise UsageError(f"{name} is {_described(pair)}, expected a pair of texts{alone}")
    texts = validate_texts(pair, name=name)
    if len(texts) != 2:
        raise UsageError(f"{name} has {len(texts)} texts, expected a pair of them")
    return texts[0], texts[1]


def _described(value: object) -> str:
    """Say what a value is; of what may be private or long, only its type.

    >>> _described(None), _described(3), _described({"a"})
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
        return f"{shown(str(value))[1:-1]} ({kind})"
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _advice(item: object) -> str:
    if is_missing(item):
        return '\n  drop or fill what is missing first, such as with df.dropna(subset=["text"])'
    if isinstance(item, bytes | bytearray):
        return "\n  decode it first, such as with .decode('utf-8')"
    return ""
