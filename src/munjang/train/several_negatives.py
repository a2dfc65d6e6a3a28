"""Files of anchor, positive and several negatives in columns → rows, with a teacher's scores where columns name them.

In: a path in any format of `text.readers`, and which columns hold what. Out: each row's texts and scores with its place. Needs no torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from munjang.errors import InputError, UsageError, shown
from munjang.text.readers import read_rows
from munjang.text.rows import BadLines


@dataclass(frozen=True)
class NegativesRow:
    """An anchor, its positive and its negatives; the scores are those of each text after the first, or margins."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    where: str


@dataclass(frozen=True)
class NegativesRows:
    """Rows in the file's order, and which lines were left out."""

    rows: tuple[NegativesRow, ...]
    skipped: tuple[str, ...]


def read_several_negatives(
    path: Path | str, *, texts: Sequence[str], scores: Sequence[str] | None = None, skip_bad: bool = False
) -> NegativesRows:
    """Return the rows of a file; `texts` and `scores` name columns, and must fit each other in number."""
    if scores is not None and (len(texts) < 3 or len(scores) not in (len(texts) - 1, len(texts) - 2)):
        raise UsageError(
            f"{path}: scores names {len(scores)} columns for {len(texts)} texts, expected texts with a query, a positive and "
            "negatives, and one score for each text after the first (or one margin for each negative)"
        )
    bad = BadLines(keep=1_000_000) if skip_bad else None
    made = []
    for row in read_rows(path, bad=bad):
        try:
            sentences = tuple(_sentence(row.values, name, row.where) for name in texts)
            numbers = tuple(_number(row.values, name, row.where) for name in scores or ())
            made.append(NegativesRow(sentences, numbers, row.where))
        except InputError as error:
            if bad is None:
                raise
            bad.add(row.where, error)
    return NegativesRows(tuple(made), tuple(bad.first) if bad else ())


def _sentence(values: Mapping[str, object], name: str, where: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name} is empty or missing, expected a sentence; columns are {', '.join(values)}")
    return value.strip()


def _number(values: Mapping[str, object], name: str, where: str) -> float:
    try:
        number = float(str(values.get(name)))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {name} is {shown(str(values.get(name)))}, expected a number; columns are {', '.join(values)}")
    return number
