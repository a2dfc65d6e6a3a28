"""Files of texts → records: an id, a text, and whatever else the row holds.

Rows come from `readers.read_rows`; which column holds the text and which the id is `column_choice`'s. A row without a text where its column
says, or with something else there, is an error that names its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from munjang.errors import InputError, shown
from munjang.text.column_choice import ColumnChoice, OnGuess, choose_columns, missing_column, sample_of, take_sample, warn_of_guess
from munjang.text.rows import BadLines, Row
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class Record:
    """One text of a file."""

    id: str | None
    text: str
    metadata: dict[str, Any]
    where: str
    """File and line, for messages."""


def records(
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
    choice = choose_columns(sample_of(first), text_column=text_column, id_column=id_column, where=first[0].source)
    if choice.guessed:
        on_guess(choice.text)
    for row in chain(first, waiting):
        try:
            record = _record(row, choice, id_named=id_column is not None)
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
        else:
            yield record


def value_of(row: Row, column: str) -> Any:
    """Return a row's value, or say which columns there are and which one was probably meant."""
    if column in row.values:
        return row.values[column]
    raise missing_column(column, row.values, where=row.where)


def text_of(row: Row, column: str) -> str:
    """Return a row's text, or say what stands in its place."""
    text = value_of(row, column)
    if not isinstance(text, str):
        raise InputError(f"{row.where}: {shown(column)} is {'null' if text is None else f'a {type(text).__name__}'}, expected a text")
    return text


def id_of(row: Row, column: str | None, *, named: bool) -> str | None:
    """Return a row's id, if it has one; a column that the caller named must be there."""
    if column is None:
        return None
    value = value_of(row, column) if named else row.values.get(column)
    return None if value is None else str(value)


def _record(row: Row, choice: ColumnChoice, *, id_named: bool) -> Record:
    text = text_of(row, choice.text)
    rest = {name: value for name, value in row.values.items() if name not in (choice.text, choice.id)}
    return Record(id_of(row, choice.id, named=id_named), text, rest, row.where)
