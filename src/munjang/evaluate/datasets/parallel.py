"""Two files with a sentence a line, line n of one the translation of line n of the other → text pairs.

An empty line on one side is a broken row; a line empty on both sides is nothing. Files of unequal length are refused, since then some line
is missing somewhere and all after it are paired wrongly.
"""

from __future__ import annotations

from pathlib import Path

from munjang.errors import InputError
from munjang.evaluate.datasets.opened import whole_text
from munjang.evaluate.datasets.rows import Dataset, TextPair


def read_parallel(source: str | Path, target: str | Path, *, skip_bad: bool = False) -> Dataset[TextPair]:
    """Return the pairs of lines of two files."""
    names = Path(source).name, Path(target).name
    left, right = ([line.strip() for line in whole_text(path).removesuffix("\n").split("\n")] for path in (source, target))
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
