"""Every file layout that is known by name, declared as data, and how a file's layout is recognised from its first lines.

A layout says which columns, which separator, which range of scores, which labels. Adding a data set is adding an entry to `LAYOUTS`. Order
matters: the first that fits is taken, so the particular stands before the general. `recognise` looks at the separator, the header and the
first rows, never at the whole file, and says its reason in words. Objects may lack keys, so the keys of a JSON file are those that half of
its first objects have. What it cannot tell it refuses, naming the columns that it saw and the option that says more. Reading the rows is
`read.py`'s.
"""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from munjang.data.files import get_file_kind, read_first_bytes
from munjang.data.rows import DIFFERENT, NLI_LABELS, SAME, Kind, Scale
from munjang.errors import InputError, UsageError, quote
from munjang.text.read_lines import refuse_utf16
from munjang.text.readers import read_rows
from munjang.text.records import BadLines, take_sample

NLI = {label: label for label in NLI_LABELS}
_HANGUL = re.compile("[가-힣]")
BINARY = {"1": SAME, "0": DIFFERENT}
INVERTED = {"0": SAME, "1": DIFFERENT}


@dataclass(frozen=True)
class DatasetLayout:
    """One way to write a data set. `columns` goes from role (a, b, score, label, …) to a header name, or to a number without a header."""

    name: str
    kind: Kind
    columns: Mapping[str, str | int]
    header: bool = True
    exact: tuple[str, ...] = ()
    """The whole header, where only that will do; otherwise the columns used suffice."""
    widths: tuple[int, int] = (0, 0)
    """Fewest and most columns, where there is no header."""
    shapes: frozenset[str] = frozenset({"tab", "comma", "jsonl", "parquet", "json"})
    quoting: bool = True
    """Whether a quotation mark in a CSV or TSV file quotes, or is a character like any other."""
    scale: Scale | None = None
    labels: Mapping[str, str] | None = None
    unlabelled: frozenset[str] = frozenset()
    """Labels by which the makers of the data say that there is none."""
    group_size: int = 0
    """Consecutive rows that form one group; the label is then the group's number."""
    fits: Callable[[list[str]], bool] = field(default=lambda _cells: True)
    """A last look at the first row: the cells of `columns` in that order, or all cells where there is no header."""


def is_number(cell: str) -> bool:
    """Tell whether a cell reads as a number.

    >>> is_number("3.5"), is_number("entailment")
    (True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def has_hangul(text: str) -> bool:
    """Tell whether a text holds a Hangul syllable."""
    return _HANGUL.search(text) is not None


_TAB = frozenset({"tab"})
_COMMA = frozenset({"comma"})
_PAIR: Mapping[str, str | int] = {"a": "sentence1", "b": "sentence2"}
_STSB = ("genre", "filename", "year", "id", "score", "sentence1", "sentence2")
_GLUE = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score")
_QUESTIONS: Mapping[str, str | int] = {"a": "question1", "b": "question2", "label": "is_duplicate"}
_STS_ROLES: Mapping[str, str | int] = {"a": "sentence1", "b": "sentence2", "score": "score", "genre": "genre"}
_BY_PLACE: Mapping[str, str | int] = {"a": 0, "b": 1, "label": 2}
_NLI_OR_NONE: dict[str, Any] = {"labels": NLI, "unlabelled": frozenset({"-"})}
_tabbed = partial(DatasetLayout, shapes=_TAB, quoting=False)
_bare = partial(_tabbed, header=False)
"""Lines of cells between tabs, where a quotation mark is a character; `_bare` ones have no header."""

LAYOUTS: tuple[DatasetLayout, ...] = (
    # scored pairs
    _tabbed("korsts", "scored", _STS_ROLES, exact=_STSB, scale=(0, 5)),
    _tabbed("glue-stsb", "scored", _STS_ROLES, exact=_GLUE, scale=(0, 5)),
    replace(
        _bare("stsb-original", "scored", {"genre": 0, "score": 4, "a": 5, "b": 6}, widths=(7, 9), scale=(0, 5)),
        shapes=_TAB | _COMMA,
        fits=lambda cells: is_number(cells[4]),
    ),
    replace(
        _bare("stsb-csv", "scored", {"a": 0, "b": 1, "score": 2}, widths=(3, 3), scale=(0, 5), fits=lambda cells: is_number(cells[2])),
        shapes=_COMMA,
        quoting=True,
    ),
    DatasetLayout(
        "klue-sts-json", "scored", {**_PAIR, "score": "labels.real-label", "genre": "source"}, shapes=frozenset({"json"}), scale=(0, 5)
    ),
    # Its scores are written 0.0 and 1.0; a bare 0 or 1 under this header is a label for same or different.
    replace(
        _tabbed("klue-sts", "scored", {**_PAIR, "score": "label"}, exact=("sentence1", "sentence2", "label"), scale=(0, 5)),
        shapes=_COMMA,
        quoting=True,
        fits=lambda cells: cells[2] not in BINARY,
    ),
    # labelled pairs: natural language inference
    _tabbed("kornli", "labelled", {**_PAIR, "label": "gold_label"}, **_NLI_OR_NONE),
    DatasetLayout("snli-jsonl", "labelled", {**_PAIR, "label": "gold_label"}, shapes=frozenset({"jsonl"}), **_NLI_OR_NONE),
    DatasetLayout(
        "klue-nli", "labelled", {"a": "premise", "b": "hypothesis", "label": "gold_label"}, shapes=frozenset({"json"}), labels=NLI
    ),
    _tabbed(
        "snli-tsv",
        "labelled",
        {"a": "premise", "b": "hypothesis", "label": "label"},
        fits=lambda cells: not is_number(cells[-1]),
        **_NLI_OR_NONE,
    ),
    _bare("xnli", "labelled", _BY_PLACE, widths=(3, 3), labels=NLI, fits=lambda cells: cells[2] in NLI),
    # labelled pairs: same or different
    _tabbed("pawsx", "labelled", {**_PAIR, "label": "label"}, exact=("id", "sentence1", "sentence2", "label"), labels=BINARY),
    _bare(
        "pawsx-xtreme",
        "labelled",
        _BY_PLACE,
        widths=(3, 3),
        labels=BINARY,
        fits=lambda cells: cells[2] in BINARY and not cells[0].isdigit(),
    ),
    _tabbed(
        "question-pair-ko",
        "labelled",
        _QUESTIONS,
        exact=("question1", "question2", "is_duplicate"),
        labels=INVERTED,
        fits=lambda cells: has_hangul("".join(cells[:2])),
    ),
    DatasetLayout("question-pairs", "labelled", _QUESTIONS, shapes=_TAB | _COMMA | {"jsonl", "parquet"}, labels=BINARY),
    # texts
    _bare("paraKQC", "texts", {"text": 2}, widths=(3, 3), group_size=10, fits=lambda cells: cells[0].isdigit() and cells[1].isdigit()),
    _tabbed("assembly-bills", "texts", {"text": "text", "label": "committee"}),
    # pairs that belong together
    _tabbed("parallel-en-ko", "pairs", {"a": "en", "b": "ko"}),
    _bare("tatoeba", "pairs", {"a": 0, "b": 1}, widths=(3, 3), fits=lambda cells: "attribution" in cells[2].lower()),
    _bare("xtreme-unlabelled", "pairs", {"a": 0, "b": 1}, widths=(2, 2)),
)

BY_NAME = {layout.name: layout for layout in LAYOUTS}

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "a": ("sentence1", "text1", "sentence_a", "a", "premise", "question1", "query", "question", "anchor", "source", "src", "en", "english"),
    "b": tuple("sentence2 text2 sentence_b b hypothesis question2 positive passage answer document target tgt ko korean".split()),  # noqa: SIM905
    "score": ("score", "similarity", "similarity_score", "label"),
    "label": ("label", "gold_label", "labels", "class", "category", "is_duplicate"),
    "genre": ("genre", "source", "domain"),
    "anchor": ("anchor", "query", "sentence", "a"),
    "positive": ("positive", "pos", "b"),
    "negative": ("negative", "neg", "c"),
    "text": ("text", "sentence", "document", "content"),
}
"""Column names by which a plain file with a header says which column is which."""

ROLES: Mapping[Kind, tuple[str, ...]] = {
    "scored": ("a", "b", "score"),
    "labelled": ("a", "b", "label"),
    "pairs": ("a", "b"),
    "triplets": ("anchor", "positive", "negative"),
    "texts": ("text", "label"),
}
"""The columns that each kind of row cannot do without."""


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
