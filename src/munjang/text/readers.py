"""A path → rows or records, whatever the file's format: txt, CSV, TSV, JSON Lines, JSON, Parquet; gzipped too; "-" is standard input.

Everything streams: memory is bounded by the longest line, not by the file. A broken line is an InputError that names file and line; with a
`BadLines` handed in it is counted there instead and reading goes on. What the columns mean is left to the caller.

In JSON each line, or each element of a list, is an object (its keys are the columns) or a string (the only column is "text"). A list is
read element by element; one whose syntax is broken cannot be read past the break, so that error is raised even when bad lines are skipped.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import LIMITS, Limits
from munjang.options import EncodingOption, FormatOption, IdColumnOption, TextColumnOption
from munjang.text.read_csv import read_csv_rows
from munjang.text.read_lines import check_encoding, decode_lines, open_input, read_text_rows
from munjang.text.records import (
    BadLines,
    ByteStream,
    OnGuess,
    Record,
    Reject,
    Row,
    TableLayout,
    describe_missing_column,
    describe_place,
    make_records,
    warn_of_guess,
)
from munjang.types import DEFAULT_ENCODING, Format

_CHUNK = 2**18
_DECODER = json.JSONDecoder()


def read_jsonl_rows(lines: Iterator[tuple[int, str]], *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each line that is not blank."""
    for number, line in lines:
        if not line.strip():
            continue
        where = describe_place(source, number)
        try:
            row = Row(source, number, _read_values(_load(line, where), where, limits))
        except InputError as error:
            reject(number, error)
            continue
        yield row


def _load(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except RecursionError as error:
        raise InputError(f"{where}: JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from error


def _read_values(value: Any, where: str, limits: Limits) -> dict[str, Any]:
    if isinstance(value, dict):
        if len(value) > limits.max_columns:
            raise InputError(f"{where}: {len(value):,} keys, the limit is {limits.max_columns:,}")
        return value
    if isinstance(value, str):
        return {"text": value}
    raise InputError(f"{where}: a JSON {type(value).__name__}, expected an object or a string")


def read_json_rows(stream: ByteStream, layout: TableLayout, *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each element of one JSON list; a row's line is the line on which the element starts."""
    text = _Text(stream, layout.encoding, source, limits)
    if text.peek() != "[":
        raise InputError(
            f"{source}: starts with {text.peek()!r}, expected a JSON list of objects\n  for one object per line, use the format jsonl"
        )
    text.take(1)
    if text.peek() == "]":
        return
    while True:
        text.peek()
        line = text.line
        where = describe_place(source, line)
        value = text.element(where)
        try:
            row = Row(source, line, _read_values(value, where, limits))
        except InputError as error:
            reject(line, error)
        else:
            yield row
        mark = text.peek()
        if mark not in (",", "]"):
            raise InputError(
                f"{describe_place(source, text.line)}: found {mark!r} after an element, expected a comma or the end of the list"
            )
        text.take(1)
        if mark == "]":
            return


class _Text:
    """The decoded text of a stream, held only as far as the element being read."""

    def __init__(self, stream: ByteStream, encoding: str, source: str, limits: Limits) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._source = source
        self._limits = limits
        self._held = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def peek(self) -> str:
        """Step over white space and return the next character, or "" at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in " \t\r\n":
                self.take(1)
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._read(_CHUNK):
                return ""

    def take(self, count: int) -> None:
        """Step over characters."""
        self.line += self._held.count("\n", self._at, self._at + count)
        self._at += count

    def element(self, where: str) -> Any:
        """Return the next JSON value, reading on until it is whole; each try doubles what is held, so the work stays linear."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError as error:
                raise InputError(f"{where}: JSON nested too deeply") from error
            except ValueError as error:
                self._read_on(where, error)
                continue
            size = end - self._at
            if end == len(self._held) and size <= self._limits.max_line_bytes and self._read(max(_CHUNK, size)):
                continue  # a number may go on in the next chunk
            self.take(end - self._at)
            return value

    def _read_on(self, where: str, error: ValueError) -> None:
        held = len(self._held) - self._at
        if held > self._limits.max_line_bytes:
            raise InputError(f"{where}: not JSON, or an element longer than {self._limits.max_line_bytes:,} bytes ({error})") from error
        if not self._read(max(_CHUNK, held)):
            message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{where}: not JSON: {message} in the element that starts here") from error

    def _read(self, size: int) -> bool:
        """Hold more text; False at the end."""
        if self._ended:
            return False
        data = self._stream.read(size)
        self._ended = not data
        try:
            more = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            line = self.line + self._held.count("\n", self._at)
            raise InputError(f"{describe_place(self._source, line)} or after: not {self._decoder_name(error)}") from error
        self._held = self._held[self._at :] + more
        self._at = 0
        return bool(more) or not self._ended

    @staticmethod
    def _decoder_name(error: UnicodeDecodeError) -> str:
        return f"{error.encoding} ({error.reason})\n  name the file's encoding, or convert it to UTF-8"


_BATCH = 1_024


def read_parquet_rows(path: Path, columns: tuple[str, ...] | None, *, source: str, limits: Limits) -> Iterator[Row]:
    """Yield a row for each row of the file, with the chosen columns or all of them; a row's line is its number from 1."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "parquet") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            present = set(names)
            for column in columns or ():
                if column not in present:
                    raise describe_missing_column(column, dict.fromkeys(names), where=source)
            if len(columns or names) > limits.max_columns:
                raise InputError(f"{source}: {len(names):,} columns, the limit is {limits.max_columns:,}")
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns) if columns else None):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(source, number, values)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{source}: not a whole Parquet file ({error})") from error


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
    encoding: EncodingOption = DEFAULT_ENCODING,
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
    chosen = format or ("txt" if is_stdin else find_format(Path(path)))
    if chosen not in get_args(Format):
        raise UsageError(f"format {chosen!r}: unknown, expected one of {', '.join(get_args(Format))}")
    if delimiter == "" or delimiter == '"':
        raise UsageError(f"delimiter {delimiter!r}: expected a character such as a comma or a tab")
    layout = TableLayout(
        format=chosen,
        quoting=chosen == "csv" if quoting is None else quoting,
        header=False if header is None and columns is not None else header,
        delimiter=delimiter or ("\t" if chosen == "tsv" else ","),
        columns=None if columns is None else tuple(columns),
        encoding=encoding,
    )
    return _open_rows(None if is_stdin else Path(path), layout, source, bad, limits, stdin)


def read_texts(
    path: Path | str,
    *,
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    format: FormatOption = None,
    quoting: bool | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: EncodingOption = DEFAULT_ENCODING,
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
    return make_records(rows, text_column=text_column, id_column=id_column, bad=bad, on_guess=on_guess)


def find_format(path: Path) -> Format:
    """Return the format a file's suffix stands for, a .gz after it aside.

    >>> find_format(Path("news.CSV.gz"))
    'csv'
    """
    inner = Path(path.stem) if path.suffix.lower() == ".gz" else path
    known = _SUFFIXES.get(inner.suffix.lower())
    if known is None:
        raise UsageError(
            f"{path.name}: no known format, expected a name that ends in {', '.join(_SUFFIXES)}, each also with .gz; or say the format"
        )
    return known


def _reject_bad(source: str, bad: BadLines | None) -> Reject:
    def reject(line: int, error: InputError) -> None:
        if bad is None:
            raise error
        bad.add(describe_place(source, line), error)

    return reject


def _open_rows(
    path: Path | None, layout: TableLayout, source: str, bad: BadLines | None, limits: Limits, stdin: ByteStream | None
) -> Iterator[Row]:
    reject = _reject_bad(source, bad)
    if layout.format == "parquet":
        if path is None or path.suffix.lower() == ".gz":
            raise UsageError(f"{source}: Parquet is read from a plain file only\n  unpack it first")
        yield from read_parquet_rows(path, layout.columns, source=source, limits=limits)
        return
    with open_input(path, stdin=stdin, source=source) as stream:
        if layout.format == "json":
            yield from read_json_rows(stream, layout, source=source, limits=limits, reject=reject)
            return
        yield from read_line_rows(stream, layout, source=source, limits=limits, reject=reject)


def read_line_rows(stream: ByteStream, layout: TableLayout, *, source: str, limits: Limits = LIMITS, reject: Reject) -> Iterator[Row]:
    """Return the rows of a stream whose format has one row a line, or almost: txt, JSON Lines, CSV, TSV."""
    lines = decode_lines(stream, layout, source=source, limits=limits, reject=reject)
    if layout.format == "txt":
        return read_text_rows(lines, source=source)
    if layout.format == "jsonl":
        return read_jsonl_rows(lines, source=source, limits=limits, reject=reject)
    return read_csv_rows(lines, layout, source=source, limits=limits, reject=reject)
