"""Files of plain text → the texts to learn from, each once; and the conditions (`where`) by which rows of a file are chosen.

In: a path in any format of `text.readers`, and which columns hold text. Out: texts with their places. Texts may be cut into sentences,
which suits objectives over sentence vectors and keeps long texts from being cut off at the model's length. A condition such as
"split=train" or "source!=xnli,pawsx" looks at another column; all conditions must hold.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from munjang.errors import InputError, UsageError, quote
from munjang.text.readers import read_rows
from munjang.text.records import BadLines, GuessedColumnWarning, Row, choose_columns, make_sample, take_sample

Wanted: TypeAlias = Callable[[Mapping[str, Any], str], bool]
"""(values by column, where the row stood) → whether the row is read."""


@dataclass(frozen=True)
class Condition:
    """The column's value is one of `values`, or none of them."""

    column: str
    values: frozenset[str]
    is_one: bool

    def holds(self, values: Mapping[str, Any], where: str) -> bool:
        """Tell whether a row's values meet the condition; a column that is not there is an InputError."""
        if self.column not in values:
            raise InputError(f"{where}: there is no column {quote(self.column)} to choose rows by; columns are {', '.join(values)}")
        return (str(values[self.column]).strip() in self.values) == self.is_one


def read_condition(text: str) -> Condition:
    """Return the condition in "column=value,value" or "column!=value,value".

    >>> read_condition("source!=xnli,pawsx").is_one
    False
    """
    column, equals, values = text.partition("=")
    is_one = not column.endswith("!")
    column = column.removesuffix("!").strip()
    listed = frozenset(value.strip() for value in values.split(",") if value.strip())
    if not equals or not column or not listed:
        raise UsageError(f"where {quote(text)}: expected COLUMN=VALUE or COLUMN!=VALUE, several values with commas between them")
    return Condition(column, listed, is_one)


def make_row_filter(conditions: Sequence[str]) -> Wanted:
    """Return the function that tells wanted rows; no condition wants them all."""
    parsed = [read_condition(text) for text in conditions]
    return lambda values, where: all(condition.holds(values, where) for condition in parsed)


_END = re.compile(r"(?<=[.!?。！？…])[\"'”’)\]」』]*\s+|\n+")
_NAME_WITH = "--text-column; a recipe has texts"
SHORTEST = 2
"""Words of the shortest sentence that is kept when a text is cut: headings and numbers alone teach little."""


@dataclass(frozen=True)
class PlainTexts:
    """Texts in the file's order, each with its place; how often one came again, and which lines were left out."""

    texts: tuple[tuple[str, str], ...]
    repeated: int
    skipped: tuple[str, ...]


def read_plain_texts(
    path: Path | str,
    *,
    columns: Sequence[str] = (),
    sentences: bool = False,
    skip_bad: bool = False,
    wanted: Wanted = lambda _values, _where: True,
) -> PlainTexts:
    """Return the texts of a file; without columns named, those of the column that looks like text. Empty ones are left out."""
    bad = BadLines(keep=1_000_000) if skip_bad else None
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    made: dict[str, str] = {}
    count = 0
    rows = read_rows(path, bad=bad)
    first = [] if columns else take_sample(rows)
    chosen = tuple(columns) or _guess_columns(first)
    for row in chain(first, rows):
        try:
            for text in _get_texts(row, chosen) if wanted(row.values, row.where) else ():
                for part in split_sentences(text) if sentences else [text]:
                    made.setdefault(part, row.where)
                    count += 1
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
    return PlainTexts(tuple(made.items()), count - len(made), tuple(bad.first) if bad else ())


def split_sentences(text: str) -> list[str]:
    """Cut a text after the signs that end sentences, and at line ends; pieces of one word are left out.

    >>> split_sentences("It rained all day. We stayed in! Good.")
    ['It rained all day.', 'We stayed in!']
    """
    parts = [part.strip() for part in _END.split(text)]
    kept = [part for part in parts if len(part.split()) >= SHORTEST]
    return kept or ([text.strip()] if text.strip() else [])


def _guess_columns(first: Sequence[Row]) -> tuple[str, ...]:
    """Return the column that holds the text, by the first rows; none of no rows."""
    if not first:
        return ()
    choice = choose_columns(make_sample(first), where=first[0].source, name_with=_NAME_WITH)
    if choice.guessed:
        warnings.warn(GuessedColumnWarning(choice.text, in_python="columns", at_shell=_NAME_WITH), stacklevel=3)
    return (choice.text,)


def _get_texts(row: Row, columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        value = row.values.get(name)
        if value is None and name not in row.values:
            raise InputError(f"{row.where}: there is no column {quote(name)}; columns are {', '.join(row.values)}")
        if value is not None and not isinstance(value, str):
            raise InputError(f"{row.where}: {name} is {quote(str(value))}, expected a text")
        if value and value.strip():
            yield value.strip()
