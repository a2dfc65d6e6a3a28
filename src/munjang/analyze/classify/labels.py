"""What callers hand over as labels → names, and which rows have which.

A label is a name in any language. Without examples it may also have a description and words that are typical of it. Labels that are
numbers become their digits; an empty label is an error that names its row.

Shapes: N rows, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError, UsageError, quote
from munjang.options import Option
from munjang.text.validate_texts import is_missing, read_cells, validate_items
from munjang.wording import brief_repr, count

Multi: TypeAlias = Annotated[bool, Option("A text may have several labels.")]

MAX_LABELS = 20_000
"""More labels than this are refused: a column of ids or of texts was probably named."""


@brief_repr
@dataclass(frozen=True)
class Label:
    """A label for texts without examples: its name, and what else is known of it."""

    name: str
    description: str = ""
    """What texts with this label are about, in a sentence."""
    words: tuple[str, ...] = ()
    """Words that are typical of such texts."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Which labels rows have."""

    names: tuple[str, ...]
    """The labels, sorted."""
    target_NC: NDArray[np.bool_]
    """Whether a row has a label."""

    @property
    def first_N(self) -> NDArray[np.int64]:
        """The only label of each row; of several, the first."""
        return np.asarray(self.target_NC.argmax(axis=1), dtype=np.int64)


def make_labels(labels: object) -> tuple[Label, ...]:
    """Return labels from names, `Label`s, or a mapping of names to descriptions; a name that stands there twice is refused.

    >>> [label.name for label in make_labels(["경제", Label("스포츠", words=("야구",))])]
    ['경제', '스포츠']
    """
    if isinstance(labels, Mapping):
        labels = [Label(name_label(name, "labels"), str(text)) for name, text in labels.items()]
    made = []
    for number, each in enumerate(validate_items(labels, name="labels", one="label")):
        label = each if isinstance(each, Label) else Label(name_label(each, f"labels[{number}]"))
        if not label.name.strip():
            raise UsageError(f"labels[{number}] is empty, expected the name of a label")
        made.append(label)
    if len(made) < 2:
        raise UsageError(f"found {count(len(made), 'label')}, expected at least two to choose from")
    names = [label.name for label in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the label {quote(twice)} is given twice, expected names that differ")
    return tuple(made)


def label_rows(labels: object, rows: int, *, multi: bool) -> LabelledRows:
    """Return which of the labels each row has; `multi` says that a row's value is a list of labels, possibly empty."""
    values = list(validate_items(labels, name="labels", one="label"))
    if len(values) != rows:
        raise UsageError(f"{count(rows, 'text')} and {count(len(values), 'label')}, expected one label for each text")
    named = [_names(value, row, multi=multi) for row, value in enumerate(values)]
    names = sorted({name for each in named for name in each})
    if not rows:
        raise InputError("there is no text to learn from, expected at least two with different labels")
    if len(names) < (1 if multi else 2):
        only = quote(names[0]) if names else "none"
        raise InputError(
            f"all {rows:,} texts have the same label ({only}), expected at least two labels\n  add examples of what is not {only}"
        )
    if len(names) > MAX_LABELS:
        raise InputError(f"found {len(names):,} labels in {count(rows, 'row')}, the limit is {MAX_LABELS:,}\n  is it the right column?")
    place = {name: number for number, name in enumerate(names)}
    target_NC = np.zeros((rows, len(names)), dtype=bool)
    for row, each in enumerate(named):
        target_NC[row, [place[name] for name in each]] = True
    return LabelledRows(tuple(names), target_NC)


def _names(value: Any, row: int, *, multi: bool) -> tuple[str, ...]:
    where = f"labels[{row}]"
    if not multi:
        return (name_label(value, where),)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{where} is {_describe(value)}, expected a list of labels, since a text may have several")
    cells = read_cells(value)
    return tuple(dict.fromkeys(name_label(each, where) for each in (value if cells is None else cells)))


def name_label(value: Any, where: str) -> str:
    """Return a label's name; a number's is how it is written."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{where} is empty, expected a label\n  remove the row, or give it a label")
    if not isinstance(value, str | int | float):
        several = "\n  where a text may have several labels, say multi" if isinstance(value, Sequence) else ""
        raise InputError(f"{where} is {_describe(value)}, expected a name or a number{several}")
    return value.strip() if isinstance(value, str) else str(value)


def _describe(value: object) -> str:
    return "empty" if is_missing(value) else f"a {type(value).__name__}"
