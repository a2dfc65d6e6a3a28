"""Files without labels → the texts to learn from: plain text, each text once, and sentences with their translations.

Plain text: a path in any format of `text.readers`, and which columns hold text. Texts may be cut into sentences, which suits objectives
over sentence vectors and keeps long texts from being cut off at the model's length. A condition (`where`) such as "split=train" or
"source!=xnli,pawsx" looks at another column; all conditions must hold.

Translations in one file: TSV, CSV, JSON Lines or Parquet, gzipped or not. Named columns are taken in the order named, the first is the
source. Without names, columns headed by language codes (en, ko, zh-CN) are the languages, or the columns of a known data set; a file of two
columns without a header is source and translation. A row with several translations gives a pair for each; an empty translation gives none;
a repeated pair is left out.

Translations in two files: line n of one is the translation of line n of the other. An empty line on one side is a broken row, on both sides
it is nothing. Files of unequal length are refused: a line is missing somewhere, and all after it would be paired wrongly.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from munjang.data.files import read_text
from munjang.data.layouts import Peek, flatten, peek, recognise
from munjang.data.rows import Dataset, TextPair
from munjang.errors import InputError, UsageError, quote
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
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


def read_parallel(source: str | Path, target: str | Path, *, skip_bad: bool = False) -> Dataset[TextPair]:
    """Return the pairs of lines of two files."""
    names = Path(source).name, Path(target).name
    left, right = ([line.strip() for line in read_text(path).removesuffix("\n").split("\n")] for path in (source, target))
    if len(left) != len(right):
        raise InputError(f"{names[0]}: {len(left):,} lines, {names[1]}: {len(right):,} lines, expected a translation for each line")
    rows, skipped = [], []
    for number, (a, b) in enumerate(zip(left, right, strict=True), start=1):
        if a and b:
            rows.append(TextPair(a, b, f"{names[0]} line {number}"))
        elif a or b:
            message = f"{names[1] if a else names[0]} line {number}: empty, expected a translation"
            if not skip_bad:
                raise InputError(message)
            skipped.append(message)
    return Dataset(tuple(rows), f"{names[0]} + {names[1]}", "parallel", "two files of lines", skipped=tuple(skipped))


_LANGUAGE = re.compile(r"[a-z]{2}([-_][A-Za-z]{2,4})?")


@dataclass(frozen=True)
class ParallelPairs:
    """Pairs in the file's order; how often one came again, how many rows had no translation, and which lines were left out."""

    pairs: tuple[TextPair, ...]
    columns: tuple[str, ...]
    repeated: int
    untranslated: int
    skipped: tuple[str, ...]

    def notes(self) -> list[str]:
        """Say what was left out on purpose."""
        made = [Message(TrainingWord.PARALLEL_COLUMNS, columns=" → ".join(self.columns))]
        made += [Message(TrainingWord.PAIRS_REPEATED, count=self.repeated)] if self.repeated else []
        made += [Message(TrainingWord.PAIRS_UNTRANSLATED, count=self.untranslated)] if self.untranslated else []
        return list(made)


def read_parallel_pairs(
    path: Path | str, *, columns: Sequence[str] = (), where: Sequence[str] = (), skip_bad: bool = False
) -> ParallelPairs:
    """Return the pairs of a file; a row without a source sentence is broken, unless it is empty throughout."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    chosen, header = _choose_columns(path, tuple(columns))
    bad = BadLines(keep=1_000_000) if skip_bad else None
    wanted = make_row_filter(where)
    made: dict[tuple[str, str], TextPair] = {}
    read = untranslated = 0
    for row in _read_rows(path, header, bad):
        try:
            if not wanted(row.values, row.where):
                continue
            found = list(_make_pairs(row, chosen))
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
            continue
        untranslated += not found
        read += len(found)
        for pair in found:
            made.setdefault((pair.a, pair.b), pair)
    return ParallelPairs(tuple(made.values()), chosen, read - len(made), untranslated, tuple(bad.first) if bad else ())


def _make_pairs(row: Row, columns: Sequence[str]) -> Iterator[TextPair]:
    values = flatten(row.values)
    source, *translations = (_get_sentence(values, name, row.where) for name in columns)
    if not source:
        if any(translations):
            raise InputError(f"{row.where}: {columns[0]} is empty, expected the source sentence")
        return
    for text in translations:
        if text:
            yield TextPair(source, text, row.where)


def _get_sentence(values: Mapping[str, Any], name: str, where: str) -> str:
    if name not in values:
        raise InputError(f"{where}: there is no column {quote(name)}; columns are {', '.join(values)}")
    value = values[name]
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: {name} is {quote(str(value))}, expected a sentence")
    return (value or "").strip()


def _choose_columns(path: Path | str, named: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return which columns hold source and translations, and whether the first line names them."""
    seen = peek(path)
    if named:
        if len(named) < 2 or len(set(named)) < len(named):
            raise InputError(f"{Path(path).name}: columns {', '.join(named)}, expected the source's and one or more translations'")
        numbered = all(name.isdigit() for name in named) and not set(named) <= {*seen.first, *seen.rare}
        absent = [name for name in named if not numbered and name not in (*seen.first, *seen.rare)]
        if absent:
            there = ", ".join(quote(name, 30) for name in seen.first)
            raise InputError(f"{Path(path).name}: there is no column {quote(absent[0])}; columns are {there}")
        return named, not numbered
    languages = _find_languages(seen.first)
    if len(languages) >= 2 and _reads_as_header(seen, languages):
        return languages, True
    try:
        layout, _ = recognise(path, "pairs")
    except InputError:
        if len(seen.first) == 2 and seen.shape in ("tab", "comma"):
            return ("0", "1"), False
        advice = "name them in order, the source's first (--columns en,ko; by number from 0 where there is no header)"
        there = ", ".join(quote(name, 30) for name in seen.first[:10])
        raise InputError(f"{Path(path).name}: columns {there}, and which hold source and translations cannot be told\n  {advice}") from None
    return (str(layout.columns["a"]), str(layout.columns["b"])), layout.header


def _find_languages(header: Sequence[str]) -> tuple[str, ...]:
    """Return the columns named by language codes; "id" is a row's number rather than Indonesian where two others are languages.

    >>> _find_languages(["id", "en", "ko", "url"])
    ('en', 'ko')
    """
    found = tuple(name for name in header if _LANGUAGE.fullmatch(name.strip()))
    others = tuple(name for name in found if name.strip() != "id")
    return others if len(others) >= 2 else found


def _reads_as_header(seen: Peek, languages: Sequence[str]) -> bool:
    """Tell a header from a first pair of short words: all columns are languages, or the others' names are no sentences."""
    return len(languages) == len(seen.first) or all(len(name) < 30 and " " not in name.strip() for name in seen.first)


def _read_rows(path: Path | str, header: bool, bad: BadLines | None) -> Iterator[Row]:
    shape = peek(path).shape
    if shape in ("json", "jsonl", "parquet"):
        return read_rows(path, bad=bad)
    read: Callable[..., Iterator[Row]] = read_rows
    is_tab = shape == "tab"
    return read(path, format="tsv" if is_tab else "csv", delimiter="\t" if is_tab else ",", quoting=not is_tab, header=header, bad=bad)
