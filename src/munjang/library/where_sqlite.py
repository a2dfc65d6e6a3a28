"""A condition → an SQL expression over `documents.metadata` with bound values, for SQLite.

Keys and values are bound, never written into the statement. The expression means what `where.matches` says, and is never null.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TypeAlias

from munjang.library.where import OWN_KEYS, AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf, Value, number_of

Bound: TypeAlias = tuple[str, list[str | int | float]]
"""An expression, and what stands in for its question marks."""

_PLAIN_KEY = re.compile(r'[^"\\\x00-\x1f]+')


def add_functions(connection: sqlite3.Connection) -> None:
    """Teach a connection the function that the expressions call."""
    connection.create_function("munjang_number", 1, number_of, deterministic=True)


def where_sql(condition: Condition | None) -> Bound:
    """Return the expression of a condition; no condition is always true.

    >>> where_sql(IsNull("year"))
    ('(json_extract(documents.metadata, ?) IS NULL)', ['$."year"'])
    """
    match condition:
        case None:
            return "1", []
        case AllOf(()):
            return "(1 = 1)", []
        case AnyOf(()) | OneOf(_, ()):
            return "(1 = 0)", []
        case AllOf(conditions):
            return _joined(" AND ", conditions)
        case AnyOf(conditions):
            return _joined(" OR ", conditions)
        case Not(inner):
            sql, values = where_sql(inner)
            return f"(NOT {sql})", values
        case IsNull(key):
            sql, values = _value_of(key)
            return f"({sql} IS NULL)", values
        case Compare(key, sign, value):
            return _compare(key, sign, value)
        case OneOf(key, options):
            return _one_of(key, options)
        case Like(key, pattern):
            sql, values = _text_of(key)
            return f"coalesce({sql} LIKE ?, 0)", [*values, pattern]
        case Contains(key, value):
            return _contains(key, value)


def is_plain_key(key: str) -> bool:
    """Say whether a path leads to the key as it is written."""
    return _PLAIN_KEY.fullmatch(key) is not None


def _joined(word: str, conditions: tuple[Condition, ...]) -> Bound:
    parts = [where_sql(each) for each in conditions]
    return _balance(word, [sql for sql, _ in parts]), [value for _, values in parts for value in values]


def _balance(word: str, expressions: list[str]) -> str:
    """Join expressions in halves of halves: SQLite refuses a tree deeper than 1,000, and a chain is as deep as it is long."""
    if len(expressions) <= 2:
        return f"({word.join(expressions)})"
    half = len(expressions) // 2
    return f"({_balance(word, expressions[:half])}{word}{_balance(word, expressions[half:])})"


def _value_of(key: str) -> Bound:
    if key in OWN_KEYS:  # a key of the metadata goes first, even if it is null
        kind, kind_values = _metadata_type(key)
        found = "json_extract(documents.metadata, ?)"
        return f"(CASE WHEN {kind} IS NULL THEN documents.{key} ELSE {found} END)", [*kind_values, f'$."{key}"']
    if is_plain_key(key):
        return "json_extract(documents.metadata, ?)", [f'$."{key}"']
    return "(SELECT value FROM json_each(documents.metadata) WHERE key = ?)", [key]


def _type_of(key: str) -> Bound:
    kind, values = _metadata_type(key)
    return (f"coalesce({kind}, 'text')" if key in OWN_KEYS else kind), values


def key_sql(key: str) -> Bound:
    """Return the expression that is true for documents whose metadata have the key."""
    kind, values = _metadata_type(key)
    return f"({kind} IS NOT NULL)", values


def _metadata_type(key: str) -> Bound:
    if is_plain_key(key):
        return "json_type(documents.metadata, ?)", [f'$."{key}"']
    return "(SELECT type FROM json_each(documents.metadata) WHERE key = ?)", [key]


def _text_of(key: str) -> Bound:
    """Return the key's value if it is a text; lists and objects come out of JSON as texts too, so the type must be asked for."""
    kind, kind_values = _type_of(key)
    found, found_values = _value_of(key)
    return f"(CASE {kind} WHEN 'text' THEN {found} END)", [*kind_values, *found_values]


def _number_of(key: str) -> Bound:
    sql, values = _value_of(key)
    return f"munjang_number({sql})", values


def _compare(key: str, sign: str, value: Value) -> Bound:
    sql, values = _text_of(key) if isinstance(value, str) else _number_of(key)
    return f"coalesce({sql} {sign} ?, 0)", [*values, value]


def _one_of(key: str, options: tuple[Value, ...]) -> Bound:
    texts = [option for option in options if isinstance(option, str)]
    numbers = [option for option in options if not isinstance(option, str)]
    parts: list[Bound] = []
    if texts:
        sql, values = _text_of(key)
        parts.append((f"coalesce({sql} IN ({_marks(len(texts))}), 0)", [*values, *texts]))
    if numbers:
        sql, values = _number_of(key)
        parts.append((f"coalesce({sql} IN ({_marks(len(numbers))}), 0)", [*values, *numbers]))
    return f"({' OR '.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _contains(key: str, value: Value) -> Bound:
    kind, kind_values = _type_of(key)
    found, found_values = _value_of(key)
    member = "each.type = 'text' AND each.atom = ?" if isinstance(value, str) else "munjang_number(each.atom) = ?"
    in_list = f"(CASE {kind} WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each({found}) AS each WHERE {member}) END)"  # noqa: S608
    if not isinstance(value, str):
        return f"coalesce({in_list}, 0)", [*kind_values, *found_values, value]
    text, text_values = _text_of(key)
    return f"(coalesce({in_list}, 0) OR coalesce(instr({text}, ?) > 0, 0))", [*kind_values, *found_values, value, *text_values, value]
