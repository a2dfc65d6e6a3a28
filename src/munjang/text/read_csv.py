"""Lines of a CSV or TSV file → rows.

With quoting, a field may stand in double quotes, hold the delimiter and line feeds, and double its quotes (RFC 4180); a quote inside an
unquoted field is an ordinary character. Without quoting, a quote is always an ordinary character: KorSTS and most TSV files need that. A
broken record is rejected under the number of its first line, and reading goes on with the line after it. Blank lines are stepped over.
A file in which most quotes are never closed would be read again and again from each of them; after a few times its length it is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from munjang.errors import InputError, quote
from munjang.limits import Limits
from munjang.text.records import Reject, Row, TableLayout, describe_place, first_repeated

_REREAD = 4
_REREAD_CHARACTERS = 2**20
"""Broken records are read again until that makes four times what was read of the file, and this much more."""


def read_csv_rows(lines: Iterator[tuple[int, str]], layout: TableLayout, *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each record; the columns are the header's, the layout's, or "0", "1", … without both."""
    columns = layout.columns
    header_pending = layout.header is not False
    for number, fields in _split_fields(lines, layout, source=source, limits=limits, reject=reject):
        if header_pending:
            header_pending = False
            if layout.header or looks_like_header(fields):
                columns = layout.columns or _read_header(fields, describe_place(source, number))
                if len(columns) == len(fields):
                    continue
                raise InputError(f"{describe_place(source, number)}: the header has {len(fields)} columns, {len(columns)} names were given")
        if columns is None:
            columns = tuple(str(place_of) for place_of in range(len(fields)))
        if len(fields) != len(columns):
            reject(
                number,
                InputError(f"{describe_place(source, number)}: {len(fields)} columns, expected {len(columns)}{_describe_fix(layout)}"),
            )
            continue
        yield Row(source, number, dict(zip(columns, fields, strict=True)))


def read_csv_head(
    lines: Iterator[tuple[int, str]], layout: TableLayout, *, source: str, limits: Limits
) -> tuple[tuple[str, ...], int] | None:
    """Return a table's columns and the number of the line at which its rows begin; None for one without a record.

    What the columns are cannot be told from a broken first record, so that one is an error.
    """

    def refuse(_number: int, error: InputError) -> None:
        raise error

    for number, fields in _split_fields(lines, layout, source=source, limits=limits, reject=refuse):
        if looks_like_header(fields):
            return _read_header(fields, describe_place(source, number)), number + 1 + sum(field.count("\n") for field in fields)
        return tuple(map(str, range(len(fields)))), number
    return None


def looks_like_header(fields: list[str]) -> bool:
    """Tell a line of column names from a line of data: names are short, no numbers, no sentences.

    >>> looks_like_header(["sentence1", "sentence2", "score"]), looks_like_header(["비가 온다.", "It rains.", "5.0"])
    (True, False)
    """
    return not any(len(name) > 40 or name.count(" ") > 3 or name.endswith((".", "?", "!")) or _is_number(name) for name in fields)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _describe_fix(layout: TableLayout) -> str:
    return "\n  quotes are read as quotes; if the file does not quote its fields, read it without quoting" if layout.quoting else ""


def _read_header(fields: list[str], where: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in fields)
    twice = first_repeated(names)
    if twice is not None:
        raise InputError(f"{where}: the column {quote(twice)} is there twice\n  if the file has no header, name its columns")
    return names


def _split_fields(
    lines: Iterator[tuple[int, str]], layout: TableLayout, *, source: str, limits: Limits, reject: Reject
) -> Iterator[tuple[int, list[str]]]:
    waiting = _Lines(lines)
    while (line := waiting.next()) is not None:
        number, text = line
        if not text.strip("\r\n \ufeff"):
            continue
        try:
            if not layout.quoting or '"' not in text:
                fields = _split_unquoted(text, layout.delimiter, limits)
            else:
                fields = _split_quoted(text, waiting, layout.delimiter, limits)
        except InputError as error:
            where = describe_place(source, number)
            if not waiting.back_to_second():
                raise InputError(f"{where}: {error}, as in many lines before{_describe_fix(layout)}") from None
            reject(number, InputError(f"{where}: {error}{_describe_fix(layout)}"))
            continue
        yield number, fields


class _Lines:
    """Lines that can be given back: after a broken record reading goes on with its second line."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._again: deque[tuple[int, str]] = deque()
        self._taken: list[tuple[int, str]] = []
        self._read = self._given_back = 0  # characters

    def next(self) -> tuple[int, str] | None:
        """Start a record."""
        self._taken = []
        return self._line()

    def more(self) -> str | None:
        """Go on with a record on the next line."""
        line = self._line()
        if line is None:
            return None
        self._taken.append(line)
        return line[1]

    def back_to_second(self) -> bool:
        """Give back all lines of a record but its first; False where too much was given back before."""
        self._given_back += sum(len(text) for _, text in self._taken)
        self._again.extendleft(reversed(self._taken))
        self._taken = []
        return self._given_back <= _REREAD * self._read + _REREAD_CHARACTERS

    def _line(self) -> tuple[int, str] | None:
        if self._again:
            return self._again.popleft()
        line = next(self._lines, None)
        self._read += 0 if line is None else len(line[1])
        return line


def _split_unquoted(text: str, delimiter: str, limits: Limits) -> list[str]:
    columns = text.count(delimiter) + 1
    if columns > limits.max_columns:
        raise InputError(f"{columns:,} columns, the limit is {limits.max_columns:,}")
    return text.split(delimiter)


def _split_quoted(text: str, lines: _Lines, delimiter: str, limits: Limits) -> list[str]:
    """Cut one record that may have quoted fields, taking more lines while a quote is open."""
    fields: list[str] = []
    at, room = 0, limits.max_line_bytes
    while True:
        if len(fields) >= limits.max_columns:
            raise InputError(f"more than {limits.max_columns:,} columns, the limit")
        if text.startswith('"', at):
            field, text, at = _read_quoted(text, at + 1, lines, room)
            room -= len(field)
            fields.append(field)
            if at == len(text):
                return fields
            if not text.startswith(delimiter, at):
                raise InputError(f"a closing quote in column {len(fields)} is followed by more text")
        else:
            end = text.find(delimiter, at)
            if end < 0:
                return [*fields, text[at:]]
            fields.append(text[at:end])
            at = end
        at += len(delimiter)


def _read_quoted(text: str, at: int, lines: _Lines, room: int) -> tuple[str, str, int]:
    """Return a quoted field, the line on which it ends and the place after its closing quote."""
    parts: list[str] = []
    while True:
        end = text.find('"', at)
        if end < 0:
            parts += [text[at:], "\n"]
            room -= len(text) - at
            following = lines.more() if room > 0 else None
            if following is None:
                raise InputError("a quote is opened and never closed")
            text, at = following, 0
            continue
        parts.append(text[at:end])
        if not text.startswith('"', end + 1):
            return "".join(parts), text, end + 1
        parts.append('"')
        at = end + 2
