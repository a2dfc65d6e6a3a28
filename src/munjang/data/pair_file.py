"""A file of pairs, of any length → its pairs one after the other, each with its row: what scoring reads and writes.

The file is gone through twice. `open_pairs` looks through it without a model: it counts the rows, collects the columns and names every row
that cannot be read, so that nothing is computed for a file that would fail at its end. Going through the `PairFile` then yields the pairs
in the order of the file. Only one row is held at a time. Labels and scores that the rows have are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from munjang.data.layouts import DatasetLayout, get_layout, make_layout, recognise_pairs
from munjang.data.read import AS_FOUND, Cells, ReadOptions, read_records
from munjang.errors import InputError, TextError, UsageError
from munjang.text.records import BadLines
from munjang.text.unicode import clean
from munjang.wording import brief_repr, count, plural


@brief_repr
@dataclass(frozen=True, slots=True)
class PairRow:
    """Two texts, and all columns of their row."""

    a: str
    b: str
    values: Mapping[str, Any]
    where: str


@brief_repr
@dataclass(frozen=True)
class PairFile:
    """A file of pairs that was looked through; iterating reads it again."""

    path: Path
    layout: DatasetLayout
    detected: str
    """How the layout was recognised, in words."""
    rows: int
    """How many pairs there are."""
    columns: tuple[str, ...]
    """Every column that some row has, in the order in which they first occur."""
    skipped: int
    """How many rows were left out."""
    first_skipped: tuple[str, ...]
    """What is wrong with the first of them."""
    skip_bad: bool = False

    @property
    def source(self) -> str:
        """The name of the file."""
        return self.path.name

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[PairRow]:
        return _read_pairs(self.path, self.layout, BadLines() if self.skip_bad else None)


def open_pairs(path: str | Path, options: ReadOptions = AS_FOUND) -> PairFile:
    """Look through a file of pairs; a row that cannot be read is an InputError, or with options.skip_bad left out and counted."""
    layout, detected = _choose_layout(path, options)
    bad = BadLines() if options.skip_bad else None
    columns: dict[str, None] = {}
    rows = 0
    for row in _read_pairs(Path(path), layout, bad):
        rows += 1
        columns |= dict.fromkeys(row.values)
    found = (bad.count, tuple(bad.first)) if bad is not None else (0, ())
    if not rows:
        left = f"; {count(found[0], 'row')} {plural(found[0], 'was')} left out, the first: {found[1][0]}" if found[0] else ""
        raise InputError(f"{Path(path).name}: no pairs{left}, expected at least one")
    return PairFile(Path(path), layout, detected, rows, tuple(columns), *found, skip_bad=options.skip_bad)


def _choose_layout(path: str | Path, options: ReadOptions) -> tuple[DatasetLayout, str]:
    if options.columns is not None:
        return make_layout(path, "pairs", options.columns), "columns named by the caller"
    if options.layout is None:
        return recognise_pairs(path)
    layout = get_layout(options.layout)
    if not {"a", "b"} <= set(layout.columns):
        raise UsageError(f"the layout {layout.name} holds {layout.kind}, expected one of pairs")
    return layout, "named by the caller"


def _read_pairs(path: Path, layout: DatasetLayout, bad: BadLines | None) -> Iterator[PairRow]:
    for where, values in read_records(path, layout, bad):
        cells = Cells(values, layout.columns, where)
        try:
            row = PairRow(cells.text("a"), cells.text("b"), values, where)
            _refuse_unreadable(row)
        except InputError as error:
            if bad is None:
                raise
            bad.add(where, error)
            continue
        yield row


def _refuse_unreadable(row: PairRow) -> None:
    """Refuse a text that no model takes while its line is still known."""
    for text in (row.a, row.b):
        try:
            clean(text)
        except TextError as error:
            raise TextError(f"{row.where}: {error}") from None
