"""Lines of a CSV or TSV file → rows.

With quoting, a field may stand in double quotes, hold the delimiter and line feeds, and double its quotes (RFC 4180); a quote inside an
unquoted field is an ordinary character. Without quoting, a quote is always an ordinary character: KorSTS and most TSV files need that. A
broken record is rejected under the number of its first line, and reading goes on with the line after it. Blank lines are stepped over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from munjang.errors import InputError
from munjang.limits import Limits
from munjang.text.rows import Layout, Reject, Row, place


def csv_rows(lines: Iterator[tuple[int, str]], layout: Layout, *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each record; the columns are the header's, the layout's, or "0", "1", … without both."""
    columns = layout.columns
    header_pending = layout.header is not False
    for number, fields in _fields(lines, layout, source=source, limits=limits, reject=reject):
        if header_pending:
            header_pending = False
            if layout.header or looks_like_header(fields):
                columns = layout.columns or _header(fields, place(source, number))
                if len(columns) == len(fields):
                    continue
                raise InputError(f"{place(source, number)}: the header has {len(fields)} columns, {len(columns)} names were given")
        if columns is None:
            columns = tuple(str(place_of) for place_of in range(len(fields)))
        if len(fields) != len(columns):
            reject(number, InputError(f"{place(source, number)}: {len(fields)} columns, expected {len(columns)}{_hint(layout)}"))
            continue
        yield Row(source, number, dict(zip(columns, fields, strict=True)))


def csv_head(lines: Iterator[tuple[int, str]], layout: Layout, *, source: str, limits: Limits) -> tuple[tuple[str, ...], int] | None:
    """Return a table's columns and the number of the line at which its rows begin; None for one without a record.

    What the columns are cannot be told from a broken first record, so that one is an error.
    """

    def refuse(_number: int, error: InputError) -> None:
        raise error

    for number, fields in _fields(lines, layout, source=source, limits=limits, reject=refuse):
        if looks_like_header(fields):
            return _header(fields, place(source, number)), number + 1 + sum(field.count("\n") for field in fields)
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


def _hint(layout: Layout) -> str:
    return "\n  quotes are read as quotes; if the file does not quote its fields, read it without quoting" if layout.quoting else ""


def _header(fields: list[str], where: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in fields)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{where}: the column {twice!r} is there twice\n  if the file has no header, name its columns")
    return names


def _fields(
    lines: Iterator[tuple[int, str]], layout: Layout, *, source: str, limits: Limits, reject: Reject
) -> Iterator[tuple[int, list[str]]]:
    waiting = _Lines(lines)
    while (line := waiting.next()) is not None:
        number, text = line
        if not text.strip("\r\n \ufeff"):
            continue
        if not layout.quoting or '"' not in text:
            yield number, text.split(layout.delimiter)
            continue
        try:
            fields = _quoted_fields(text, waiting, layout.delimiter, room=limits.max_line_bytes)
        except InputError as error:
            waiting.back_to_second()
            reject(number, InputError(f"{place(source, number)}: {error}{_hint(layout)}"))
            continue
        yield number, fields


class _Lines:
    """Lines that can be given back: after a broken record reading goes on with its second line."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._again: deque[tuple[int, str]] = deque()
        self._taken: list[tuple[int, str]] = []

    def next(self) -> tuple[int, str] | None:
        """Start a record."""
        self._taken = []
        return self._again.popleft() if self._again else next(self._lines, None)

    def more(self) -> str | None:
        """Go on with a record on the next line."""
        line = self._again.popleft() if self._again else next(self._lines, None)
        if line is None:
            return None
        self._taken.append(line)
        return line[1]

    def back_to_second(self) -> None:
        """Give back all lines of a record but its first."""
        self._again.extendleft(reversed(self._taken))
        self._taken = []


def _quoted_fields(text: str, lines: _Lines, delimiter: str, *, room: int) -> list[str]:
    """Cut one record that may have quoted fields, taking more lines while a quote is open."""
    fields: list[str] = []
    at = 0
    while True:
        if text.startswith('"', at):
            field, text, at = _quoted(text, at + 1, lines, room)
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


def _quoted(text: str, at: int, lines: _Lines, room: int) -> tuple[str, str, int]:
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
