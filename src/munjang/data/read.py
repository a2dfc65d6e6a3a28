"""A data file → typed rows: scored pairs, labelled pairs, pairs, triplets, labelled texts.

The layout is recognised from header and shape unless the caller names it or its columns, and the `Dataset` says which it was. A row that
cannot be read is an InputError with file and line; with skip_bad it is left out and listed in `Dataset.skipped`. Scores are scaled to 0…1
from the range that the layout or the caller states; a score outside it is an error, never a reason to guess another range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from munjang.data.layouts import ROLES, DatasetLayout, flatten, get_layout, make_layout, peek, recognise
from munjang.data.rows import Dataset, Kind, LabelledPair, LabelledText, Row, Scale, ScoredPair, TextPair, Triplet
from munjang.errors import InputError, UsageError, quote
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.text.readers import read_rows
from munjang.text.records import BadLines

Columns: TypeAlias = Mapping[str, str | int]
AnyDataset: TypeAlias = Dataset[ScoredPair] | Dataset[LabelledPair] | Dataset[TextPair] | Dataset[Triplet] | Dataset[LabelledText]


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a file. Nothing said is recognised, or is the layout's own."""

    layout: str | None = None
    columns: Columns | None = None
    scale: Scale | None = None
    labels: Mapping[str, str] | None = None
    skip_bad: bool = False


AS_FOUND = ReadOptions()


def read_scored_pairs(path: str | Path, options: ReadOptions = AS_FOUND) -> Dataset[ScoredPair]:
    """Return sentence pairs with scores from 0 to 1. A plain file's scores are taken as 0…1 unless options.scale says otherwise."""
    layout, detected = _choose_layout(path, "scored", options)
    low, high = scale = options.scale or layout.scale or (0.0, 1.0)
    if not low < high:
        raise UsageError(f"scale {low:g} to {high:g}, expected a lower and a higher number")

    def make(cells: Cells) -> ScoredPair:
        value = cells.number("score")
        if not low <= value <= high:
            raise InputError(
                f"{cells.where}: the score is {value:g}, expected {low:g} to {high:g}\n"
                "  state the scale of the file, for example 0 to 5 (--scale 0 5)"
            )
        return ScoredPair(cells.text("a"), cells.text("b"), (value - low) / (high - low), cells.optional("genre"), cells.where)

    made = replace(_read(path, layout, detected, make, options), scale=scale)
    top = max((row.score for row in made.rows), default=1.0)
    note = Message(TrainingWord.SCALE_DOUBTFUL, top=low + top * (high - low), low=low, high=high)
    return replace(made, notes=(note,)) if top <= 0.5 and len(made) >= 20 else made


def read_labelled_pairs(path: str | Path, options: ReadOptions = AS_FOUND) -> Dataset[LabelledPair]:
    """Return sentence pairs with an NLI label in words, or with "1" for same and "0" for different (turned, where the set is inverted)."""
    layout, detected = _choose_layout(path, "labelled", options)
    known = options.labels or layout.labels

    def make(cells: Cells) -> LabelledPair | None:
        raw = cells.label()
        if raw in layout.unlabelled:
            return None
        if known is not None and raw not in known:
            raise InputError(
                f"{cells.where}: the label is {quote(raw)}, expected {', '.join(known)}\n"
                "  state what the file's labels mean (--label NAME=same)"
            )
        return LabelledPair(cells.text("a"), cells.text("b"), known[raw] if known is not None else raw, cells.where)

    made = _read(path, layout, detected, make, options)
    inverted = layout.labels is not None and options.labels is None and layout.labels.get("0") == "1"
    return replace(made, notes=(Message(TrainingWord.LABELS_TURNED),)) if inverted else made


def read_text_pairs(path: str | Path, options: ReadOptions = AS_FOUND) -> Dataset[TextPair]:
    """Return sentence pairs that belong together."""
    layout, detected = _choose_layout(path, "pairs", options)
    return _read(path, layout, detected, lambda cells: TextPair(cells.text("a"), cells.text("b"), cells.where), options)


def read_triplets(path: str | Path, options: ReadOptions = AS_FOUND) -> Dataset[Triplet]:
    """Return anchors with a nearer and a farther sentence."""
    layout, detected = _choose_layout(path, "triplets", options)

    def make(cells: Cells) -> Triplet:
        return Triplet(cells.text("anchor"), cells.text("positive"), cells.text("negative"), cells.where)

    return _read(path, layout, detected, make, options)


def read_labelled_texts(path: str | Path, options: ReadOptions = AS_FOUND) -> Dataset[LabelledText]:
    """Return sentences with their class, or with the number of their group where the set comes in groups."""
    layout, detected = _choose_layout(path, "texts", options)
    size, count = layout.group_size, 0

    def make(cells: Cells) -> LabelledText:
        nonlocal count
        label = str(count // size) if size else cells.label()
        count += 1
        return LabelledText(cells.text("text"), label, cells.where)

    made = _read(path, layout, detected, make, options)
    if size and (made.skipped or count % size):
        raise InputError(
            f"{made.source}: {count} good rows, expected whole groups of {size}\n  groups are counted by rows, so no row can be left out"
        )
    return made


def read_any(path: str | Path, options: ReadOptions = AS_FOUND) -> AnyDataset:
    """Return the rows of a file as whatever kind its layout has; how a linter or a trainer starts."""
    if options.columns is not None:
        kind = _find_kind(options.columns)
    else:
        kind = get_layout(options.layout).kind if options.layout else recognise(path)[0].kind
    return READERS[kind](path, options)


READERS: dict[str, Callable[[str | Path, ReadOptions], AnyDataset]] = {
    "scored": read_scored_pairs,
    "labelled": read_labelled_pairs,
    "pairs": read_text_pairs,
    "triplets": read_triplets,
    "texts": read_labelled_texts,
}


@dataclass(frozen=True, slots=True)
class Cells:
    """One row's values by role, each asked for as what it should be."""

    values: Mapping[str, Any]
    columns: Columns
    where: str

    def text(self, role: str) -> str:
        """Return a sentence that is not empty, white space at its ends removed."""
        value = self.values.get(str(self.columns[role]))
        if not isinstance(value, str) or not value.strip():
            found = "empty" if value is None or value == "" or isinstance(value, str) else f"a {type(value).__name__}"
            raise InputError(f"{self.where}: {self._column(role)} is {found}, expected a sentence")
        return value.strip()

    def number(self, role: str) -> float:
        """Return a finite number."""
        value = self.values.get(str(self.columns[role]))
        try:
            number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{self.where}: {self._column(role)} is {quote(str(value), 30)}, expected a number")
        return number

    def label(self) -> str:
        """Return a label as a word; 1, 1.0 and true are "1"."""
        value = self.values.get(str(self.columns["label"]))
        if isinstance(value, (bool, float)) and float(value).is_integer():
            value = int(value)
        text = "" if value is None else str(value).strip()
        if not text:
            raise InputError(f"{self.where}: {self._column('label')} is empty, expected a label")
        return text.removesuffix(".0") if text in ("0.0", "1.0") else text

    def _column(self, role: str) -> str:
        name = str(self.columns[role])
        return name if name.isidentifier() else f"column {quote(name, 30)}"

    def optional(self, role: str) -> str:
        """Return a text, or "" where the column is not there."""
        value = self.values.get(str(self.columns.get(role, "")))
        return "" if value is None else str(value)


def _find_kind(columns: Columns) -> Kind:
    """The kind of row that needs just these columns."""
    for kind, roles in ROLES.items():
        if set(columns) - {"genre"} == set(roles):
            return kind
    known = "; ".join(", ".join(roles) for roles in ROLES.values())
    raise UsageError(f"columns for {', '.join(columns)}, expected one of: {known}")


def _choose_layout(path: str | Path, kind: Kind, options: ReadOptions) -> tuple[DatasetLayout, str]:
    if options.columns is not None:
        return make_layout(path, kind, options.columns), "columns named by the caller"
    if options.layout is None:
        return recognise(path, kind)
    layout = get_layout(options.layout)
    if layout.kind != kind:
        raise UsageError(f"the layout {layout.name} holds {layout.kind}, expected {kind}")
    return layout, "named by the caller"


def _read(
    path: str | Path, layout: DatasetLayout, detected: str, make: Callable[[Cells], Row | None], options: ReadOptions
) -> Dataset[Row]:
    bad: BadLines | None = BadLines(keep=1_000_000) if options.skip_bad else None
    rows: list[Row] = []
    skipped: list[str] = []
    for where, values in read_records(path, layout, bad):
        try:
            row = make(Cells(values, layout.columns, where))
        except InputError as error:
            if not options.skip_bad:
                raise
            skipped.append(str(error).split("\n")[0])
            continue
        if row is None:
            skipped.append(f"{where}: without a label")
        else:
            rows.append(row)
    return Dataset(tuple(rows), Path(path).name, layout.name, detected, skipped=(*skipped, *(bad.first if bad else ())))


def read_records(path: str | Path, layout: DatasetLayout, bad: BadLines | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every row with its place and its values by column name, or by "0", "1", … where there is no header."""
    shape = peek(path).shape
    if shape in ("json", "jsonl", "parquet"):
        for row in read_rows(path, bad=bad):
            yield row.where, flatten(row.values)
    elif not layout.header and shape == "tab":
        yield from _read_ragged(path, layout, bad)
    else:
        written, delimiter = ("tsv", "\t") if shape == "tab" else ("csv", ",")
        found = read_rows(path, format=written, delimiter=delimiter, quoting=layout.quoting, header=layout.header, bad=bad)  # type: ignore[arg-type]
        for row in found:
            yield row.where, row.values


def _read_ragged(path: str | Path, layout: DatasetLayout, bad: BadLines | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Lines without a header whose number of columns may vary within the layout's bounds, as in the original STS benchmark."""
    fewest, most = layout.widths if layout.widths != (0, 0) else (0, 2**31)
    for row in read_rows(path, format="txt", bad=bad):
        cells = str(row.values["text"]).split("\t")
        if not fewest <= len(cells) <= most:
            error = InputError(f"{row.where}: {len(cells)} columns, expected {fewest}{f' to {most}' if most > fewest else ''}")
            if bad is None:
                raise error
            bad.add(row.where, error)
            continue
        yield row.where, {str(place): cell for place, cell in enumerate(cells)}
