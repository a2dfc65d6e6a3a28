"""The first rows of a file → which column holds the text, and which one the id.

A caller may name either. What is not named is guessed from up to `SAMPLE_ROWS` rows, never from one: the text is in a column with a
well-known name, or in the only column, ids aside, that holds texts. An id is never taken for a text. A guess among several columns of text
is said, so that nobody finds out from the vectors.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from munjang.errors import InputError, shown
from munjang.text.rows import Row

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
        super().__init__(f"text column: {shown(column)} (guessed; name it with {in_python})")
        self.for_shell = f"text column: {shown(column)} (guessed; name it with {at_shell})"


OnGuess: TypeAlias = Callable[[str], None]
"""Is told the text column where it was chosen among several."""


def warn_of_guess(column: str) -> None:
    """Say which column was guessed, as a warning."""
    warnings.warn(GuessedColumnWarning(column), stacklevel=3)


@dataclass(frozen=True)
class Sample:
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


def sample_of(rows: Sequence[Row], columns: Iterable[str] = ()) -> Sample:
    """Return what rows hold; `columns` are there even where no row is."""
    texts = dict.fromkeys(columns, 0)
    for row in rows:
        for name, value in row.values.items():
            texts[name] = texts.get(name, 0) + (isinstance(value, str) and bool(value.strip()))
    return Sample(len(rows), texts)


def choose_columns(
    sample: Sample,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    where: str,
    name_with: str = f"{AT_SHELL} (in Python, {IN_PYTHON})",
) -> ColumnChoice:
    """Return the columns that hold text and id; what was not named is guessed, or refused with the columns that there are.

    `name_with` is what the refusal tells the caller to name the column with.

    >>> choose_columns(Sample(2, {"id": 2, "sentence": 2, "year": 0}), where="news.jsonl")
    ColumnChoice(text='sentence', id='id', guessed=False)
    """
    id_name = id_column or next((name for name in ID_COLUMNS if name in sample.texts), None)
    if text_column is not None:
        return ColumnChoice(text_column, id_name, guessed=False)
    candidates = [name for name in sample.texts if name != id_column and name.strip().lower() not in ID_COLUMNS]
    holding = [name for name in candidates if sample.texts[name] or not sample.rows]
    known = _well_known(candidates, sample)
    if known is None and len(holding) != 1:
        raise InputError(f"{where}: which column holds the text? found {listed(list(sample.texts))}\n  name it with {name_with}")
    text = known or holding[0]
    return ColumnChoice(text, id_name, guessed=text.strip().lower() != "text" and any(name != text for name in holding))


def missing_column(column: str, present: Mapping[str, Any], *, where: str) -> InputError:
    """Return the error for a column that is not there."""
    near = difflib.get_close_matches(column, present, n=1, cutoff=0.5)
    meant = f"; did you mean {shown(near[0])}?" if near else ""
    return InputError(f"{where}: no column {shown(column)}, found {listed(list(present))}{meant}")


def listed(names: Sequence[str]) -> str:
    """Return names of columns for a message."""
    return ", ".join(shown(name) for name in names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "no columns"


def _well_known(candidates: Sequence[str], sample: Sample) -> str | None:
    """Return the first column with a well-known name that half of the rows fill; else the one that most rows fill."""
    by_lower_case = {name.strip().lower(): name for name in reversed(candidates)}
    known = [by_lower_case[name] for name in TEXT_COLUMNS if name in by_lower_case]
    often = [name for name in known if sample.texts[name] * 2 >= sample.rows]
    return next(iter(often or sorted(known, key=lambda name: -sample.texts[name])), None)
