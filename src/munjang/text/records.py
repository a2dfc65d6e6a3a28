"""Files of texts → records: an id, a text, and whatever else the row holds.

Rows come from `readers.read_rows`; which column holds the text and which the id is `column_choice`'s. A row without a text where its column
says, or with something else there, is an error that names its line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeAlias

from munjang.errors import InputError, quote
from munjang.types import Format
from munjang.wording import brief_repr, nearest_name

TEXT_COLUMNS = ("text", "sentence", "content", "contents", "document", "body", "문장", "본문", "내용", "텍스트", "title", "제목")
ID_COLUMNS = ("id", "_id", "doc_id", "guid")

SAMPLE_ROWS = 100
SAMPLE_CHARACTERS = 2**22
"""A sample of long rows ends here, so that memory stays bounded."""


AT_SHELL, IN_PYTHON = "--text-column", "text_column"
"""What names the text column."""


class GuessedColumnWarning(UserWarning):
    """Several columns hold texts, and nobody said which one is meant; `for_shell` names the option of the commands."""

    def __init__(self, column: str, *, in_python: str = IN_PYTHON, at_shell: str = AT_SHELL) -> None:
        super().__init__(f"text column: {quote(column)} (guessed; name it with {in_python})")
        self.for_shell = f"text column: {quote(column)} (guessed; name it with {at_shell})"


OnGuess: TypeAlias = Callable[[str], None]
"""Is told the text column where it was chosen among several."""


def warn_of_guess(column: str) -> None:
    """Say which column was guessed, as a warning."""
    warnings.warn(GuessedColumnWarning(column), stacklevel=3)


@dataclass(frozen=True)
class RowSample:
    """What the first rows hold: how many there are, and in how many of them each column holds a text."""

    rows: int
    texts: Mapping[str, int]


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that hold text and id."""

    text: str
    id: str | None
    guessed: bool
    """The text column was chosen among several that hold texts."""


def take_sample(rows: Iterator[Row]) -> list[Row]:
    """Take the first rows off an iterator; those behind them stay there."""
    taken: list[Row] = []
    characters = 0
    while len(taken) < SAMPLE_ROWS and characters < SAMPLE_CHARACTERS and (row := next(rows, None)) is not None:
        taken.append(row)
        characters += sum(len(value) for value in row.values.values() if isinstance(value, str))
    return taken


def make_sample(rows: Sequence[Row], columns: Iterable[str] = ()) -> RowSample:
    """Return what rows hold; `columns` are there even where no row is."""
    texts = dict.fromkeys(columns, 0)
    for row in rows:
        for name, value in row.values.items():
            texts[name] = texts.get(name, 0) + (isinstance(value, str) and bool(value.strip()))
    return RowSample(len(rows), texts)


def choose_columns(
    sample: RowSample,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    where: str,
    name_with: str = f"{AT_SHELL} (in Python, {IN_PYTHON})",
) -> ColumnChoice:
    """Return the columns that hold text and id; what was not named is guessed, or refused with the columns that there are.

    `name_with` is what the refusal tells the caller to name the column with.

    >>> choose_columns(RowSample(2, {"id": 2, "sentence": 2, "year": 0}), where="news.jsonl")
    ColumnChoice(text='sentence', id='id', guessed=False)
    """
    id_name = id_column or next((name for name in ID_COLUMNS if name in sample.texts), None)
    if text_column is not None:
        return ColumnChoice(text_column, id_name, guessed=False)
    candidates = [name for name in sample.texts if name != id_column and name.strip().lower() not in ID_COLUMNS]
    holding = [name for name in candidates if sample.texts[name] or not sample.rows]
    known = _find_well_known(candidates, sample)
    if known is None and len(holding) != 1:
        raise InputError(f"{where}: which column holds the text? found {list_names(list(sample.texts))}\n  name it with {name_with}")
    text = known or holding[0]
    return ColumnChoice(text, id_name, guessed=text.strip().lower() != "text" and any(name != text for name in holding))


def describe_missing_column(column: str, present: Mapping[str, Any], *, where: str) -> InputError:
    """Return the error for a column that is not there."""
    near = nearest_name(column, present, cutoff=0.5)
    meant = "" if near is None else f"; did you mean {quote(near)}?"
    return InputError(f"{where}: no column {quote(column)}, found {list_names(list(present))}{meant}")


def list_names(names: Sequence[str]) -> str:
    """Return names of columns for a message."""
    return ", ".join(quote(name) for name in names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "no columns"


def _find_well_known(candidates: Sequence[str], sample: RowSample) -> str | None:
    """Return the first column with a well-known name that half of the rows fill; else the one that most rows fill."""
    by_lower_case = {name.strip().lower(): name for name in reversed(candidates)}
    known = [by_lower_case[name] for name in TEXT_COLUMNS if name in by_lower_case]
    often = [name for name in known if sample.texts[name] * 2 >= sample.rows]
    return next(iter(often or sorted(known, key=lambda name: -sample.texts[name])), None)


class ByteStream(Protocol):
    """What the readers read from: a file, a gzip file or standard input."""

    def read(self, size: int = ..., /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...

    def readline(self, size: int = ..., /) -> bytes:
        """Return one line, or its first `size` bytes."""
        ...


@brief_repr
@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: its values by column, and where it stood."""

    source: str
    line: int
    """The physical line on which the row starts, from 1; in Parquet and JSON files the row's or line's number."""
    values: dict[str, Any]

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return describe_place(self.source, self.line)


@dataclass(frozen=True)
class TableLayout:
    """How the rows of a file are written. What is None follows from the format."""

    format: Format
    quoting: bool
    header: bool | None
    """None: guess from the first line."""
    delimiter: str
    columns: tuple[str, ...] | None
    encoding: str


@dataclass
class BadLines:
    """Counts the lines that were skipped because they are broken, and keeps the first few messages."""

    keep: int = 5
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, error: InputError) -> None:
        """Count one broken line."""
        self.count += 1
        if len(self.first) < self.keep:
            message = str(error)
            self.first.append(message if message.startswith(where) else f"{where}: {message}")


Reject: TypeAlias = Callable[[int, InputError], None]
"""What a reader calls for a broken line: it raises, or counts the line so that the reader goes on with the next."""


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that was there before, None if there is none.

    >>> first_repeated(["id", "text", "id", "text"])
    'id'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def describe_place(source: str, line: int) -> str:
    """Name a line of a file.

    >>> describe_place("news.jsonl", 18)
    'news.jsonl line 18'
    """
    return f"{source} line {line}"


@brief_repr
@dataclass(frozen=True)
class Record:
    """One text of a file."""

    id: str | None
    text: str
    metadata: dict[str, Any]
    where: str
    """File and line, for messages."""


def make_records(
    rows: Iterable[Row],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    bad: BadLines | None = None,
    on_guess: OnGuess = warn_of_guess,
) -> Iterator[Record]:
    """Yield a record for each row; columns that are not named are guessed from the first rows, and `on_guess` is told of a doubtful one."""
    waiting = iter(rows)
    first = take_sample(waiting)
    if not first:
        return
    choice = choose_columns(make_sample(first), text_column=text_column, id_column=id_column, where=first[0].source)
    if choice.guessed:
        on_guess(choice.text)
    for row in chain(first, waiting):
        try:
            record = _make_record(row, choice, id_named=id_column is not None)
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
        else:
            yield record


def convert_value(row: Row, column: str) -> Any:
    """Return a row's value, or say which columns there are and which one was probably meant."""
    if column in row.values:
        return row.values[column]
    raise describe_missing_column(column, row.values, where=row.where)


def find_text(row: Row, column: str) -> str:
    """Return a row's text, or say what stands in its place."""
    text = convert_value(row, column)
    if not isinstance(text, str):
        raise InputError(f"{row.where}: {quote(column)} is {'null' if text is None else f'a {type(text).__name__}'}, expected a text")
    return text


def find_id(row: Row, column: str | None, *, named: bool) -> str | None:
    """Return a row's id, if it has one; a column that the caller named must be there."""
    if column is None:
        return None
    value = convert_value(row, column) if named else row.values.get(column)
    return None if value is None else str(value)


def _make_record(row: Row, choice: ColumnChoice, *, id_named: bool) -> Record:
    text = find_text(row, choice.text)
    rest = {name: value for name, value in row.values.items() if name not in (choice.text, choice.id)}
    return Record(find_id(row, choice.id, named=id_named), text, rest, row.where)
