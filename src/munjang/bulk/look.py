"""An input file's beginning → what must be known to read any part of it: its format, its columns, and where its rows begin.

Only a header, or the first row, is read. Which column holds the text is decided here, once, so that all parts agree.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from munjang.bulk.job import InputFile
from munjang.bulk.opening import LineRange, open_raw, opened_lines, reading, short_name, stamp
from munjang.bulk.settings import BulkSettings
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import LIMITS
from munjang.text.read_csv import csv_head
from munjang.text.read_json import jsonl_rows
from munjang.text.read_lines import check_encoding, decoded_lines, text_rows
from munjang.text.readers import format_of
from munjang.text.records import ID_COLUMNS, guess_text_column, missing_column
from munjang.text.rows import Format, Layout


def look_at(path: str, settings: BulkSettings) -> InputFile:
    """Return what is to be known about a file before its parts are read."""
    check_encoding(settings.encoding)
    format = settings.input_format or format_of(Path(path))
    if format == "json":
        raise UsageError(f"{short_name(path)}: a JSON list cannot be read in parts\n  convert it to JSON Lines, one object a line")
    with reading(path):
        size, modified = stamp(path)
        if format == "parquet":
            columns, begin, first_line, named = parquet_columns(path), 0, 1, None
        else:
            columns, begin, first_line, named = _beginning(path, format, settings)
    if not columns:  # without a row that can be read there are no columns to choose from
        return InputFile(path, size, modified, format, settings.text_column or "text", settings.id_column, None, 0, 1)
    where = short_name(path)
    text_column = settings.text_column or guess_text_column(columns, where=where)
    id_column = settings.id_column or next((name for name in ID_COLUMNS if name in columns), None)
    if format == "txt":
        text_column, id_column = "text", None
    for column in filter(None, (text_column, id_column)):
        if column not in columns:
            raise missing_column(column, dict.fromkeys(columns), where=where)
    return InputFile(path, size, modified, format, text_column, id_column, named, begin, first_line)


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


def parquet_columns(path: str) -> list[str]:
    """Return the names of a Parquet file's columns."""
    with open_raw(path) as handle:
        try:
            names: list[str] = parquet_file(handle).schema_arrow.names
        except ValueError as error:  # pyarrow's errors about content are ValueErrors
            raise InputError(f"{short_name(path)}: not a whole Parquet file ({error})") from error
    return names


def _beginning(path: str, format: Format, settings: BulkSettings) -> tuple[list[str], int, int, tuple[str, ...] | None]:
    """Return the columns, the byte and line at which rows begin, and the columns of a table.

    Rows begin behind the header, whether they can be read or not: those that cannot be are rejected by whoever reads them all.
    """
    layout = layout_of(format, settings, None, header=None)
    source = short_name(path)
    with opened_lines(path, 0, None) as lines:
        if format not in ("csv", "tsv"):
            return _columns(lines, layout, source), 0, 1, None
        decoded = decoded_lines(lines, layout, source=source, limits=LIMITS, reject=_refuse)
        head = csv_head(decoded, layout, source=source, limits=LIMITS)
        if head is None:
            return [], 0, 1, None
        columns, line = head
        place = lines.index(line)
        return list(columns), lines.starts[place] if place < len(lines.starts) else lines.at, line, columns


def _refuse(_line: int, error: InputError) -> None:
    raise error


def _columns(lines: LineRange, layout: Layout, source: str) -> list[str]:
    """Return the columns of the first row that can be read; none where there is no such row."""

    def reject(_line: int, _error: InputError) -> None:
        """Broken rows are the affair of whoever reads all rows."""

    decoded = decoded_lines(lines, layout, source=source, limits=LIMITS, reject=reject)
    rows = text_rows(decoded, source=source) if layout.format == "txt" else jsonl_rows(decoded, source=source, reject=reject)
    return [column for row in islice(rows, 1) for column in row.values]
