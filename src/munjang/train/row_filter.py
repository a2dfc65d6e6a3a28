"""`where` of a data source: which rows of a file are read, by the values of other columns.

In: conditions such as "split=train" or "source!=xnli,pawsx". Out: a function that says of a row's values whether the row is wanted. One
file often holds training and test rows side by side; all conditions must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from munjang.errors import InputError, UsageError, shown

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
            raise InputError(f"{where}: there is no column {shown(self.column)} to choose rows by; columns are {', '.join(values)}")
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
        raise UsageError(f"where {shown(text)}: expected COLUMN=VALUE or COLUMN!=VALUE, several values with commas between them")
    return Condition(column, listed, is_one)


def wanted_rows(conditions: Sequence[str]) -> Wanted:
    """Return the function that tells wanted rows; no condition wants them all."""
    parsed = [read_condition(text) for text in conditions]
    return lambda values, where: all(condition.holds(values, where) for condition in parsed)
