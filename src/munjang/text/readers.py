"""A path → rows or records, whatever the file's format: txt, CSV, TSV, JSON Lines, JSON, Parquet; gzipped too; "-" is standard input.

Everything streams: memory is bounded by the longest line, not by the file. A broken line is an InputError that names file and line; with a
`BadLines` handed in it is counted there instead and reading goes on. What the columns mean is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from munjang.errors import InputError, UsageError
from munjang.limits import LIMITS, Limits
from munjang.text.column_choice import OnGuess, warn_of_guess
from munjang.text.read_csv import csv_rows
from munjang.text.read_json import json_rows, jsonl_rows
from munjang.text.read_lines import check_encoding, decoded_lines, open_input, text_rows
from munjang.text.read_parquet import parquet_rows
from munjang.text.records import Record, records
from munjang.text.rows import BadLines, ByteStream, Format, Layout, Reject, Row, place

_SUFFIXES: dict[str, Format] = {
    ".txt": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
}


def read_rows(
    path: Path | str,
    *,
    format: Format | None = None,
    quoting: bool | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8-sig",
    bad: BadLines | None = None,
    limits: Limits = LIMITS,
    stdin: ByteStream | None = None,
) -> Iterator[Row]:
    """Yield the rows of a file, or of standard input for "-".

    Args:
        path: the file; its suffix says the format unless `format` does. Standard input is lines of text unless `format` says otherwise.
        format: txt, csv, tsv, jsonl, json or parquet.
        quoting: whether double quotes enclose fields; by default yes in CSV, no in TSV.
        header: whether the first line of CSV and TSV names the columns; by default no when `columns` does, else guessed: a first line that
            has a number, a sentence's end or a long field is data, and the columns are then "0", "1", ….
        delimiter: what stands between fields; by default a comma in CSV, a tab in TSV.
        columns: names for the columns of a CSV or TSV file; the columns to read of a Parquet file.
        encoding: of the text; a byte order mark is dropped.
        bad: counts broken lines instead of raising.
        limits: bounds on one line.
        stdin: read instead of the process's standard input.
    """
    check_encoding(encoding)
    is_stdin = str(path) == "-"
    source = "stdin" if is_stdin else Path(path).name
    chosen = format or ("txt" if is_stdin else format_of(Path(path)))
    if chosen not in get_args(Format):
        raise UsageError(f"format {chosen!r}: unknown, expected one of {', '.join(get_args(Format))}")
    if delimiter == "" or delimiter == '"':
        raise UsageError(f"delimiter {delimiter!r}: expected a character such as a comma or a tab")
    layout = Layout(
        format=chosen,
        quoting=chosen == "csv" if quoting is None else quoting,
        header=False if header is None and columns is not None else header,
        delimiter=delimiter or ("\t" if chosen == "tsv" else ","),
        columns=None if columns is None else tuple(columns),
        encoding=encoding,
    )
    return _rows(None if is_stdin else Path(path), layout, source, bad, limits, stdin)


def read_texts(
    path: Path | str,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    format: Format | None = None,
    quoting: bool | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8-sig",
    bad: BadLines | None = None,
    limits: Limits = LIMITS,
    stdin: ByteStream | None = None,
    on_guess: OnGuess = warn_of_guess,
) -> Iterator[Record]:
    """Yield the texts of a file with their ids; options are those of `read_rows`, and which columns hold text and id.

    A column that is not named is guessed from the first rows. `on_guess` is told of a text column that was chosen among several; without
    it, that is a warning.
    """
    rows = read_rows(
        path,
        format=format,
        quoting=quoting,
        header=header,
        delimiter=delimiter,
        columns=columns,
        encoding=encoding,
        bad=bad,
        limits=limits,
        stdin=stdin,
    )
    return records(rows, text_column=text_column, id_column=id_column, bad=bad, on_guess=on_guess)


def format_of(path: Path) -> Format:
    """Return the format a file's suffix stands for, a .gz after it aside.

    >>> format_of(Path("news.CSV.gz"))
    'csv'
    """
    inner = Path(path.stem) if path.suffix.lower() == ".gz" else path
    known = _SUFFIXES.get(inner.suffix.lower())
    if known is None:
        raise UsageError(
            f"{path.name}: no known format, expected a name that ends in {', '.join(_SUFFIXES)}, each also with .gz; or say the format"
        )
    return known


def _rejecting(source: str, bad: BadLines | None) -> Reject:
    def reject(line: int, error: InputError) -> None:
        if bad is None:
            raise error
        bad.add(place(source, line), error)

    return reject


def _rows(path: Path | None, layout: Layout, source: str, bad: BadLines | None, limits: Limits, stdin: ByteStream | None) -> Iterator[Row]:
    reject = _rejecting(source, bad)
    if layout.format == "parquet":
        if path is None or path.suffix.lower() == ".gz":
            raise UsageError(f"{source}: Parquet is read from a plain file only\n  unpack it first")
        yield from parquet_rows(path, layout.columns, source=source)
        return
    with open_input(path, stdin=stdin, source=source) as stream:
        if layout.format == "json":
            yield from json_rows(stream, layout, source=source, limits=limits, reject=reject)
            return
        lines = decoded_lines(stream, layout, source=source, limits=limits, reject=reject)
        if layout.format == "txt":
            yield from text_rows(lines, source=source)
        elif layout.format == "jsonl":
            yield from jsonl_rows(lines, source=source, reject=reject)
        else:
            yield from csv_rows(lines, layout, source=source, limits=limits, reject=reject)
