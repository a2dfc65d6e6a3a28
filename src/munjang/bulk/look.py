"""An input file's beginning → what must be known to read any part of it: its format, its columns, and where its rows begin.

Only a header and the first rows are read. Which column holds the text is decided here, once, so that all parts agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from munjang.bulk.job import InputFile
from munjang.bulk.opening import LineRange, open_raw, opened_lines, reading, short_name, stamp
from munjang.bulk.settings import BulkSettings
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import LIMITS
from munjang.text.column_choice import Sample, choose_columns, missing_column, sample_of, take_sample, warn_of_guess
from munjang.text.read_csv import csv_head, csv_rows
from munjang.text.read_json import jsonl_rows
from munjang.text.read_lines import check_encoding, decoded_lines, text_rows
from munjang.text.readers import format_of
from munjang.text.rows import Format, Layout, Reject, Row

_STRINGS = ("string", "large_string", "dictionary<values=string", "dictionary<values=large_string")
"""How the names of pyarrow's types of texts begin."""


def look_at(path: str, settings: BulkSettings) -> InputFile:
    """Return what is to be known about a file before its parts are read."""
    check_encoding(settings.encoding)
    format = settings.input_format or format_of(Path(path))
    if format == "json":
        raise UsageError(f"{short_name(path)}: a JSON list cannot be read in parts\n  convert it to JSON Lines, one object a line")
    with reading(path):
        size, modified = stamp(path)
        if format == "parquet":
            head, sample = _Head(), _parquet_sample(path)
        else:
            head = _head(path, format, settings) if format in ("csv", "tsv") else _Head()
            sample = _sample(path, format, settings, head)
    if not sample.texts:  # without a row that can be read there are no columns to choose from
        return InputFile(path, size, modified, format, settings.text_column or "text", settings.id_column, None, 0, 1)
    text_column, id_column = ("text", None) if format == "txt" else _columns(sample, settings, where=short_name(path))
    return InputFile(path, size, modified, format, text_column, id_column, head.columns, head.begin, head.line)


def holds_rows(file: InputFile, settings: BulkSettings) -> bool:
    """Say whether a file has a row, be it one that cannot be used."""
    with reading(file.path):
        if file.format == "parquet":
            with open_raw(file.path) as handle:
                return int(parquet_file(handle).metadata.num_rows) > 0
        broken = False

        def reject(_line: int, _error: InputError) -> None:
            nonlocal broken
            broken = True

        with opened_lines(file.path, file.begin, None) as lines:
            head = _Head(file.columns, file.begin, file.first_line)
            rows = _rows(lines, file.format, settings, head, short_name(file.path), reject)
            return next(rows, None) is not None or broken


def _columns(sample: Sample, settings: BulkSettings, *, where: str) -> tuple[str, str | None]:
    choice = choose_columns(sample, text_column=settings.text_column, id_column=settings.id_column, where=where)
    for column in filter(None, (choice.text, choice.id)):
        if column not in sample.texts:
            raise missing_column(column, sample.texts, where=where)
    if choice.guessed:
        warn_of_guess(choice.text)
    return choice.text, choice.id


def layout_of(format: Format, settings: BulkSettings, columns: tuple[str, ...] | None, *, header: bool | None) -> Layout:
    """Return how a file's lines are written."""
    quoting = format == "csv" if settings.quoting is None else settings.quoting
    delimiter = "\t" if format == "tsv" else ","
    return Layout(format, quoting and format in ("csv", "tsv"), header, delimiter, columns, settings.encoding)


def parquet_file(handle: Any) -> Any:
    """Open a Parquet file for reading."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "parquet") from error
    return pyarrow.parquet.ParquetFile(handle)


@dataclass(frozen=True)
class _Head:
    """A table's columns, and the byte and line at which rows begin; other files have no head."""

    columns: tuple[str, ...] | None = None
    begin: int = 0
    line: int = 1


def _parquet_sample(path: str) -> Sample:
    """Return what a Parquet file's columns hold by their types."""
    with open_raw(path) as handle:
        try:
            schema = parquet_file(handle).schema_arrow
        except ValueError as error:  # pyarrow's errors about content are ValueErrors
            raise InputError(f"{short_name(path)}: not a whole Parquet file ({error})") from error
    return Sample(1, {field.name: int(str(field.type).startswith(_STRINGS)) for field in schema})


def _head(path: str, format: Format, settings: BulkSettings) -> _Head:
    """Return a table's head.

    Rows begin behind the header, whether they can be read or not: those that cannot be are rejected by whoever reads them all.
    """
    layout = layout_of(format, settings, None, header=None)
    source = short_name(path)
    with opened_lines(path, 0, None) as lines:
        decoded = decoded_lines(lines, layout, source=source, limits=LIMITS, reject=_refuse)
        head = csv_head(decoded, layout, source=source, limits=LIMITS)
        if head is None:
            return _Head()
        columns, line = head
        place = lines.index(line)
        return _Head(columns, lines.starts[place] if place < len(lines.starts) else lines.at, line)


def _refuse(_line: int, error: InputError) -> None:
    raise error


def _sample(path: str, format: Format, settings: BulkSettings, head: _Head) -> Sample:
    """Return what the first rows that can be read hold."""
    if format in ("csv", "tsv") and head.columns is None:
        return Sample(0, {})
    with opened_lines(path, head.begin, None) as lines:
        return sample_of(take_sample(_rows(lines, format, settings, head, short_name(path), _pass_over)), head.columns or ())


def _pass_over(_line: int, _error: InputError) -> None:
    """Leave broken rows to whoever reads all rows."""


def _rows(lines: LineRange, format: Format, settings: BulkSettings, head: _Head, source: str, reject: Reject) -> Iterator[Row]:
    layout = layout_of(format, settings, head.columns, header=False)
    decoded = decoded_lines(lines, layout, source=source, limits=LIMITS, reject=reject)
    if format == "txt":
        return text_rows(decoded, source=source)
    if format == "jsonl":
        return jsonl_rows(decoded, source=source, reject=reject)
    return csv_rows(decoded, layout, source=source, limits=LIMITS, reject=reject)
