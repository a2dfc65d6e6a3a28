"""Rows in and out for commands that compare whole files: every row with its text, and rows written as CSV, TSV, JSON Lines or text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from munjang.atomic import atomic_file, atomic_write
from munjang.cli.options import Columns
from munjang.errors import InputError, TextError, UsageError
from munjang.text.readers import read_rows
from munjang.text.records import BadLines, make_records
from munjang.text.unicode import clean

TABLES = (".csv", ".tsv", ".jsonl")
TEXTS = (*TABLES, ".txt")
PAGES = (".html", ".htm")


@dataclass(frozen=True)
class TextRow:
    """One row of a file: its number from 1, its id if the file has ids, its text, and all its columns."""

    number: int
    id: str | None
    text: str
    values: Mapping[str, Any]

    def facts(self) -> dict[str, Any]:
        """Return what JSON output says of a row."""
        return {"row": self.number, **({} if self.id is None else {"id": self.id}), "text": self.text}

    def name(self) -> str:
        """Return what people know the row by."""
        return str(self.number) if self.id is None else self.id


def no_text(names: Sequence[str], bad: BadLines | None = None) -> InputError:
    """Return the error for input without a record; for all commands the same."""
    where = ", ".join("stdin" if name == "-" else name for name in names[:3]) + (" …" if len(names) > 3 else "")
    if bad is not None and bad.count:
        return InputError(f"{where}: no text is left, {bad.count:,} were skipped\n  the first: {bad.first[0]}")
    return InputError(f"{where}: holds no text, expected at least one")


def read_text_rows(path: str, columns: Columns) -> list[TextRow]:
    """Read a whole file and refuse texts that no model takes while their line is still known."""
    rows = list(read_rows(path, format=columns.format, encoding=columns.encoding, quoting=columns.quoting))
    found = []
    for number, record in enumerate(make_records(rows, text_column=columns.text_column, id_column=columns.id_column), start=1):
        try:
            clean(record.text)
        except TextError as error:
            raise TextError(f"{record.where}: {error}") from None
        found.append(TextRow(number, record.id, record.text, rows[number - 1].values))
    if not found:
        raise no_text([path])
    return found


def beside(rows: Sequence[TextRow], said: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every row's own columns and what is said of it; a name that the rows use already gets a number, so that nothing is lost.

    >>> beside([TextRow(1, None, "a", {"text": "a", "topic": "x"})], [{"topic": 7}])
    [{'text': 'a', 'topic': 'x', 'topic_2': 7}]
    """
    names = free_names(list(dict.fromkeys(name for each in said for name in each)), {name for row in rows for name in row.values})
    return [{**row.values, **{names[name]: value for name, value in each.items()}} for row, each in zip(rows, said, strict=True)]


def check_rows_output(output: Path | None, *, suffixes: Sequence[str] = TABLES) -> None:
    """Refuse a name whose suffix says no format."""
    if output is not None and output.suffix.lower() not in suffixes:
        raise UsageError(f"{output}: expected a name that ends in {', '.join(suffixes)}")


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows in the format the name says; a .txt file gets the column "text" alone."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        atomic_write(path, "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows))
    elif suffix == ".txt":
        atomic_write(path, "".join(" ".join(str(row["text"]).splitlines()) + "\n" for row in rows))
    else:
        atomic_write(path, _table(rows, "," if suffix == ".csv" else "\t"))


def stream_rows(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows of any number as they come, as CSV, TSV or JSON Lines by the name; the file appears whole or not at all.

    `names` are the columns of a table; a tab or line break inside a text is a space in TSV, whose quotation marks are ordinary characters.
    """
    suffix = path.suffix.lower()
    with atomic_file(path) as handle:
        # a lone surrogate becomes a visible escape, which in JSON is the character itself
        stream = io.TextIOWrapper(handle, encoding="utf-8", errors="backslashreplace", newline="")
        try:
            if suffix == ".jsonl":
                stream.writelines(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
            elif suffix == ".tsv":
                stream.write("\t".join(map(_one_cell, names)) + "\n")
                stream.writelines("\t".join(_one_cell(row.get(name)) for name in names) + "\n" for row in rows)
            else:
                table = csv.writer(stream, lineterminator="\n")
                table.writerow(names)
                table.writerows([_cell(row.get(name)) for name in names] for row in rows)
        finally:
            stream.detach()


def free_names(names: Sequence[str], taken: Iterable[str]) -> dict[str, str]:
    """Return for each name the one to use; a name that is taken already gets a number, so that nothing is lost.

    >>> free_names(["label", "score"], ["score", "score_2"])
    {'label': 'label', 'score': 'score_3'}
    """
    used, chosen = set(taken), {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2))
        chosen[name] = name if name not in used else next(free for free in numbered if free not in used)
        used.add(chosen[name])
    return chosen


_BREAKS = str.maketrans("\t\r\n", "   ")


def _one_cell(value: Any) -> str:
    cell = _cell(value)
    return "" if cell is None else str(cell).translate(_BREAKS)


def _table(rows: Sequence[Mapping[str, Any]], delimiter: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    table.writerow(names)
    table.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value
