"""What a filter over metadata means: a tree of conditions, and whether a document's metadata meet it.

The meaning is the same in every store; `matches` says it in Python, stores say it in SQL with bound values (where_sqlite.py), and
where_parser.py makes the tree from what people write.

A number is compared with numbers, and with texts that read as a number (CSV files know only texts); a text is compared with texts, by code
points. A key is one of the metadata; `id` and `text` are the document's own where its metadata have no key of that name. True and false are
1 and 0. `Like` has % and _, ignores the case of ASCII letters and knows no escape. `Contains` asks for a part
of a text or a member of a list. A test of a missing or unfitting value is false, so `Not` of it is true; `IsNull` is true for missing
keys and for null.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Value: TypeAlias = str | int | float | bool
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,3})?")
_OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Compare:
    """The key's value stands in this relation to the value."""

    key: str
    operator: Operator
    value: Value


@dataclass(frozen=True)
class OneOf:
    """The key's value equals one of the values."""

    key: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Like:
    """The key's text fits the pattern."""

    key: str
    pattern: str


@dataclass(frozen=True)
class Contains:
    """The key's text holds this text, or the key's list holds this value."""

    key: str
    value: Value


@dataclass(frozen=True)
class IsNull:
    """The key is missing, or its value is null."""

    key: str


@dataclass(frozen=True)
class Not:
    """The condition is not met."""

    condition: Condition


@dataclass(frozen=True)
class AllOf:
    """Every condition is met."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one condition is met."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Compare | OneOf | Like | Contains | IsNull | Not | AllOf | AnyOf


OWN_KEYS = ("id", "text")
"""Keys that every document has beside its metadata."""


def keys_of(condition: Condition) -> list[str]:
    """Return the keys that a condition asks for, in order.

    >>> keys_of(AllOf((Compare("year", ">", 2020), Not(IsNull("kind")), Compare("year", "<", 2030))))
    ['year', 'kind']
    """
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            return list(dict.fromkeys(key for each in conditions for key in keys_of(each)))
        case Not(inner):
            return keys_of(inner)
        case _:
            return [condition.key]


def number_of(value: object) -> float | int | None:
    """Return the number that a value is or reads as, or None.

    >>> number_of(" 2021"), number_of("1e3"), number_of("soon"), number_of(7)
    (2021.0, 1000.0, None, 7)
    """
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) < 400 and _NUMBER.fullmatch(value.strip(" ")):
        return float(value)
    return None


def matches(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    """Say whether metadata meet a condition; the document's own `id` and `text` are handed in among them.

    >>> matches(Compare("year", ">=", 2020), {"year": "2021"})
    True
    """
    match condition:
        case AllOf(conditions):
            return all(matches(each, metadata) for each in conditions)
        case AnyOf(conditions):
            return any(matches(each, metadata) for each in conditions)
        case Not(inner):
            return not matches(inner, metadata)
        case IsNull(key):
            return metadata.get(key) is None
        case Compare(key, sign, value):
            return _compare(metadata.get(key), sign, value)
        case OneOf(key, values):
            return any(_compare(metadata.get(key), "=", value) for value in values)
        case Like(key, pattern):
            return isinstance(found := metadata.get(key), str) and like_pattern(pattern).fullmatch(found) is not None
        case Contains(key, value):
            return _contains(metadata.get(key), value)


def like_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a `Like` as a regular expression."""
    parts = (".*" if ch == "%" else "." if ch == "_" else f"(?i:{re.escape(ch)})" if ch.isascii() else re.escape(ch) for ch in pattern)
    return re.compile("".join(parts), re.DOTALL | re.ASCII)


def _compare(found: object, sign: Operator, value: Value) -> bool:
    if isinstance(value, str):
        return isinstance(found, str) and _OPERATORS[sign](found, value)
    number = number_of(found)
    return number is not None and _OPERATORS[sign](number, value)


def _contains(found: object, value: Value) -> bool:
    if isinstance(found, list):
        return any(_compare(each, "=", value) for each in found)
    return isinstance(found, str) and isinstance(value, str) and value in found
