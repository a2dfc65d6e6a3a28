"""A file's first lines → the layout it is written in, and the reason in words.

Looks at the separator, the header and the first rows; never at the whole file. Objects may lack keys, so the keys of a JSON file are those
that half of its first objects have. What it cannot tell it refuses, naming the columns that it saw and the option that says more. Reading
the rows is `read.py`'s.
"""

from __future__ import annotations

import csv
import difflib
import io
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from munjang.data.files import get_file_kind, read_first_bytes
from munjang.data.layouts import BY_NAME, LAYOUTS, ROLES, SYNONYMS, DatasetLayout, is_number
from munjang.data.rows import NLI_LABELS, Kind
from munjang.errors import InputError, UsageError, quote
from munjang.text.read_lines import refuse_utf16
from munjang.text.readers import read_rows
from munjang.text.records import BadLines, take_sample

_PEEK_BYTES = 2**17
_PEEK_RECORDS = 20


@dataclass(frozen=True)
class Peek:
    """The first record of a file and one after it: `first` may be a header, and is one in JSON and Parquet (the usual keys).

    `second` is the next record that is as wide as the first, so that a broken one does not hide the layout; else the very next.
    """

    shape: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    rare: tuple[str, ...] = ()
    """Keys that fewer than half of the first objects have: not guessed from, but they can be named."""


def peek(path: str | Path) -> Peek:
    """Return the shape of a file and two records of its beginning."""
    kind = get_file_kind(path)
    if kind in ("json", "jsonl", "ndjson", "parquet"):
        broken = BadLines()  # reading names them, or skips them
        found = [flatten(row.values) for row in take_sample(read_rows(path, bad=broken))]
        if broken.count and not found:
            raise InputError(broken.first[0])
        return _find_keys("jsonl" if kind == "ndjson" else kind, found, path)
    data = read_first_bytes(path, _PEEK_BYTES)
    refuse_utf16(data, Path(path).name)
    text = data.decode("utf-8-sig", errors="replace")
    tabbed = "\t" in text.split("\n", 1)[0]
    if tabbed:
        records = [line.rstrip("\r").split("\t") for line in text.split("\n")[:_PEEK_RECORDS] if line.strip("\r")]
    else:
        records = list(itertools.islice(csv.reader(io.StringIO(text, newline="")), _PEEK_RECORDS))
    if not records or not any(records[0]):
        raise InputError(f"{Path(path).name}: empty, expected rows")
    as_wide = (record for record in records[1:] if len(record) == len(records[0]))
    second = next(as_wide, records[1] if len(records) > 1 else [])
    return Peek("tab" if tabbed else "comma", tuple(records[0]), tuple(second))


def recognise(path: str | Path, kind: Kind | None = None) -> tuple[DatasetLayout, str]:
    """Return the layout of a file and how it was told, among those of one kind of row or among all."""
    seen = peek(path)
    for layout in LAYOUTS:
        if (kind is None or layout.kind == kind) and _fits(layout, seen):
            return layout, f"{layout.name}: {_describe(layout, seen)}"
    plain = _guess_plain(seen, kind)
    if plain is None:
        advice = "name the columns, for example a = first column, b = second column (--column a=NAME --column b=NAME)"
        raise InputError(f"{Path(path).name}: columns {_list_names(seen.first)}, expected {_describe_wanted(kind)}\n  {advice}")
    return plain, f"plain file with a header: {', '.join(f'{role} = {quote(str(column), 30)}' for role, column in plain.columns.items())}"


def recognise_pairs(path: str | Path) -> tuple[DatasetLayout, str]:
    """Return the layout of a file of pairs, whatever else its rows hold, and how it was told."""
    seen = peek(path)
    for layout in LAYOUTS:
        if {"a", "b"} <= set(layout.columns) and _fits(layout, seen):
            return layout, f"{layout.name}: {_describe(layout, seen)}"
    return recognise(path, "pairs")


def get_layout(name: str) -> DatasetLayout:
    """Return a layout by its name, or name the nearest one."""
    if name in BY_NAME:
        return BY_NAME[name]
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    raise UsageError(f"no data layout is called {quote(name)}\n  {f'did you mean {near[0]}?' if near else 'known: ' + ', '.join(BY_NAME)}")


def make_layout(path: str | Path, kind: Kind, columns: Mapping[str, str | int]) -> DatasetLayout:
    """Return a plain layout with the caller's columns, by header name or, for a file without a header, by number from 0."""
    seen = peek(path)
    unknown = [role for role in columns if role not in (*ROLES[kind], "genre")]
    missing = [role for role in ROLES[kind] if role not in columns]
    if unknown or missing:
        raise UsageError(f"columns for {', '.join(columns)}, expected {', '.join(ROLES[kind])}")
    numbered = all(isinstance(column, int) for column in columns.values())
    absent = [str(column) for column in columns.values() if not numbered and column not in (*seen.first, *seen.rare)]
    if absent:
        raise InputError(f"{Path(path).name}: no column {quote(absent[0])}; there are {_list_names(seen.first)}")
    return replace(_make_plain(kind, columns), header=not numbered, quoting=seen.shape != "tab")


def flatten(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the keys of inner objects joined by a dot.

    >>> flatten({"a": 1, "labels": {"label": 2}})
    {'a': 1, 'labels.label': 2}
    """
    result: dict[str, Any] = {}
    for key, value in item.items():
        if isinstance(value, dict):
            result.update({f"{key}.{inner}": leaf for inner, leaf in value.items()})
        else:
            result[key] = value
    return result


def _find_keys(shape: str, items: list[dict[str, Any]], path: str | Path) -> Peek:
    """Return the keys that half of the objects have, and the values of the first object that has them all, or most of them."""
    if not items:
        raise InputError(f"{Path(path).name}: empty, expected rows")
    counts = Counter(key for item in items for key in item)
    keys = [key for key, count in counts.items() if 2 * count >= len(items)]
    fullest = max(items, key=lambda item: sum(key in item for key in keys))
    values = tuple("" if fullest.get(key) is None else str(fullest[key]) for key in keys)
    return Peek(shape, tuple(keys), values, tuple(key for key in counts if key not in keys))


def _fits(layout: DatasetLayout, seen: Peek) -> bool:
    if seen.shape not in layout.shapes:
        return False
    if not layout.header:
        wide = layout.widths[0] <= len(seen.first) <= layout.widths[1]
        return wide and not _is_header(seen.first) and layout.fits(list(seen.first))
    used = [str(column) for role, column in layout.columns.items() if role in ROLES[layout.kind]]
    if (layout.exact and seen.first != layout.exact) or not set(used) <= set(seen.first):
        return False
    if len(seen.second) != len(seen.first):
        return not seen.second
    cells = dict(zip(seen.first, seen.second, strict=True))
    return layout.fits([cells[column] for column in used])


def _is_header(cells: tuple[str, ...]) -> bool:
    """Whether a first line names columns: all its cells are usual names of columns."""
    names = {name for names in SYNONYMS.values() for name in names}
    return all(cell.strip().lower() in names for cell in cells)


def _describe(layout: DatasetLayout, seen: Peek) -> str:
    return f"header {_list_names(seen.first)}" if layout.header else f"no header, {len(seen.first)} columns"


def _guess_plain(seen: Peek, kind: Kind | None) -> DatasetLayout | None:
    """The layout of a file that names its columns by usual names."""
    kinds: tuple[Kind, ...] = (kind,) if kind else ("triplets", "scored", "labelled", "pairs", "texts")
    by_lower = {name.strip().lower(): name for name in reversed(seen.first)}
    for wanted in kinds:
        columns: dict[str, str | int] = {}
        for role in ROLES[wanted]:
            free = [by_lower[name] for name in SYNONYMS[role] if name in by_lower and by_lower[name] not in columns.values()]
            if free:
                columns[role] = free[0]
        if len(columns) == len(ROLES[wanted]) and (kind or _is_plausible(wanted, columns, seen)):
            if wanted == "scored" and "genre" in by_lower:
                columns["genre"] = by_lower["genre"]
            return replace(_make_plain(wanted, columns), quoting=seen.shape != "tab")
    return None


def _is_plausible(kind: Kind, columns: Mapping[str, str | int], seen: Peek) -> bool:
    """Whether the first row speaks for this kind, where several would do."""
    cells = dict(zip(seen.first, seen.second, strict=False))
    if kind == "scored":
        value = cells.get(str(columns["score"]), "")
        return is_number(value) and (columns["score"] != "label" or value not in ("0", "1"))
    if kind == "labelled":
        return cells.get(str(columns["label"]), "") in ("0", "1", *NLI_LABELS)
    return True


def _make_plain(kind: Kind, columns: Mapping[str, str | int]) -> DatasetLayout:
    return DatasetLayout("plain", kind, dict(columns), scale=(0.0, 1.0) if kind == "scored" else None)


def _describe_wanted(kind: Kind | None) -> str:
    if kind is None:
        return "a known data set or columns with usual names (sentence1, sentence2, score or label)"
    return ", ".join(f"{role} ({' or '.join(SYNONYMS[role][:3])})" for role in ROLES[kind])


def _list_names(names: tuple[str, ...]) -> str:
    return ", ".join(quote(name, 30) for name in names[:10]) + ("…" if len(names) > 10 else "")
