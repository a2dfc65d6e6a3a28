"""Files of texts → records: an id, a text, and whatever else the row holds.

Rows come from `readers.read_rows`; this file chooses the column that holds the text and the one that holds the id, and says which columns
there are when it cannot.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from munjang.errors import InputError, shown
from munjang.text.rows import BadLines, Row
from munjang.wording import brief_repr

TEXT_COLUMNS = ("text", "sentence", "content", "contents", "document", "body", "문장", "본문", "내용", "텍스트", "title", "제목")
ID_COLUMNS = ("id", "_id", "doc_id", "guid")


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
    rows: Iterable[Row], *, text_column: str | None = None, id_column: str | None = None, bad: BadLines | None = None
) -> Iterator[Record]:
    """Yield a record for each row; the columns are chosen by the first row when they are not given."""
    chosen: tuple[str, str | None] | None = None
    for row in rows:
        if chosen is None:
            text_name = text_column or guess_text_column(row.values, where=row.where)
            chosen = text_name, id_column or next((name for name in ID_COLUMNS if name in row.values), None)
        try:
            yield _record(row, *chosen)
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)


def guess_text_column(columns: Iterable[str], *, where: str) -> str:
    """Return the column that holds the text: a well-known name, or the only column.

    >>> guess_text_column(["id", "sentence"], where="news.csv")
    'sentence'
    """
    names = list(columns)
    by_lower_case = {name.lower(): name for name in reversed(names)}
    known = next((by_lower_case[name] for name in TEXT_COLUMNS if name in by_lower_case), None)
    if known is not None:
        return known
    if len(names) == 1:
        return names[0]
    raise InputError(f"{where}: which column holds the text? found {_listed(names)}\n  name one of them as the text column")


def value_of(row: Row, column: str) -> Any:
    """Return a row's value, or say which columns there are and which one was probably meant."""
    if column in row.values:
        return row.values[column]
    raise missing_column(column, row.values, where=row.where)


def missing_column(column: str, present: Mapping[str, Any], *, where: str) -> InputError:
    """Return the error for a column that is not there."""
    near = difflib.get_close_matches(column, present, n=1, cutoff=0.5)
    meant = f"; did you mean {shown(near[0])}?" if near else ""
    return InputError(f"{where}: no column {shown(column)}, found {_listed(list(present))}{meant}")


def _listed(names: list[str]) -> str:
    return ", ".join(shown(name) for name in names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "no columns"


def _record(row: Row, text_column: str, id_column: str | None) -> Record:
    text = value_of(row, text_column)
    if not isinstance(text, str):
        raise InputError(f"{row.where}: {shown(text_column)} is a {type(text).__name__}, expected a text")
    identity = None if id_column is None else value_of(row, id_column)
    rest = {name: value for name, value in row.values.items() if name not in (text_column, id_column)}
    return Record(None if identity is None else str(identity), text, rest, row.where)
