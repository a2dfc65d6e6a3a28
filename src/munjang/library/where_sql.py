"""A condition → an SQL expression over a document's metadata with bound values, in the dialect of each store.

Keys and values are bound, never written into the statement. An expression means what `where.matches` says, and is never null. SQLite reads
`documents.metadata` (a text of JSON) and calls a function of ours for numbers (`add_functions`). PostgreSQL reads `documents.found` (jsonb)
and compares numbers as its own numeric, which holds every number that JSON can (`NUMBER_FUNCTION`), and texts by code point.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from munjang.errors import UsageError, quote
from munjang.library.where import OWN_KEYS, AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf, Value, number_of

Bound: TypeAlias = tuple[str, list[Any]]
"""An expression, and the values of its placeholders."""

_PLAIN_KEY = re.compile(r'[^"\\\x00-\x1f]+')
_DIGITS = "[0-9]{1,150}[0-9]{0,150}"  # PostgreSQL counts to 255
_NUMBER = rf"^[+-]?({_DIGITS}(\.([0-9]{{0,150}}[0-9]{{0,150}}))?|\.{_DIGITS})([eE][+-]?[0-9]{{1,3}})?$"
NUMBER_FUNCTION = rf"""
    CREATE FUNCTION munjang_number(found jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE jsonb_typeof(found)
            WHEN 'number' THEN (found #>> '{{}}')::numeric
            WHEN 'boolean' THEN CASE WHEN found = 'true'::jsonb THEN 1 ELSE 0 END::numeric
            WHEN 'string' THEN CASE
                WHEN length(found #>> '{{}}') < 400 AND btrim(found #>> '{{}}', ' ') ~ '{_NUMBER}'
                THEN btrim(found #>> '{{}}', ' ')::numeric
            END
        END
    $$"""
"""What `where.number_of` says, in PostgreSQL."""

_LOWER = "translate({}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"


def where_sqlite(condition: Condition | None) -> Bound:
    """Return the expression of a condition for SQLite; no condition is always true.

    >>> where_sqlite(IsNull("year"))
    ('(json_extract(documents.metadata, ?) IS NULL)', ['$."year"'])
    """
    return _write(condition, _SQLite())


def where_postgres(condition: Condition | None) -> Bound:
    """Return the expression of a condition for PostgreSQL; no condition is always true.

    >>> where_postgres(Compare("year", ">", 2020))
    ('coalesce(munjang_number((documents.found -> %s)) > %s, false)', ['year', Decimal('2020')])
    """
    return _write(condition, _PostgreSQL())


class _Dialect(Protocol):
    """How one database writes the conditions on a key."""

    def is_null(self, key: str) -> Bound: ...

    def compare(self, key: str, sign: str, value: Value) -> Bound: ...

    def is_one_of(self, key: str, options: Sequence[Value]) -> Bound: ...

    def is_like(self, key: str, pattern: str) -> Bound: ...

    def contains(self, key: str, value: Value) -> Bound: ...


def _write(condition: Condition | None, dialect: _Dialect) -> Bound:
    match condition:
        case None | AllOf(()):
            return "(1 = 1)", []
        case AnyOf(()) | OneOf(_, ()):
            return "(1 = 0)", []
        case AllOf(conditions):
            return join_bounds(" AND ", [_write(each, dialect) for each in conditions])
        case AnyOf(conditions):
            return join_bounds(" OR ", [_write(each, dialect) for each in conditions])
        case Not(inner):
            sql, values = _write(inner, dialect)
            return f"(NOT {sql})", values
        case IsNull(key):
            return dialect.is_null(key)
        case Compare(key, sign, value):
            return dialect.compare(key, sign, value)
        case OneOf(key, options):
            return dialect.is_one_of(key, options)
        case Like(key, pattern):
            return dialect.is_like(key, pattern)
        case Contains(key, value):
            return dialect.contains(key, value)


def join_bounds(word: str, parts: Sequence[Bound]) -> Bound:
    """Return one expression of one or more, joined by " AND " or " OR "."""
    return _balance(word, [sql for sql, _ in parts]), [value for _, values in parts for value in values]


def _balance(word: str, expressions: list[str]) -> str:
    """Join expressions in halves of halves: SQLite refuses a tree deeper than 1,000, and a chain is as deep as it is long."""
    if len(expressions) <= 2:
        return f"({word.join(expressions)})"
    half = len(expressions) // 2
    return f"({_balance(word, expressions[:half])}{word}{_balance(word, expressions[half:])})"


def add_functions(connection: sqlite3.Connection) -> None:
    """Teach a connection to SQLite the function that the expressions call."""
    connection.create_function("munjang_number", 1, number_of, deterministic=True)


def is_plain_key(key: str) -> bool:
    """Say whether a path of SQLite leads to the key as it is written."""
    return _PLAIN_KEY.fullmatch(key) is not None


def has_key_sqlite(key: str) -> Bound:
    """Return the expression that is true for documents whose metadata have the key."""
    kind, values = _metadata_type(key)
    return f"({kind} IS NOT NULL)", values


def _metadata_type(key: str) -> Bound:
    if is_plain_key(key):
        return "json_type(documents.metadata, ?)", [f'$."{key}"']
    return "(SELECT type FROM json_each(documents.metadata) WHERE key = ?)", [key]


class _SQLite:
    def is_null(self, key: str) -> Bound:
        sql, values = self._value(key)
        return f"({sql} IS NULL)", values

    def compare(self, key: str, sign: str, value: Value) -> Bound:
        sql, values = self._text(key) if isinstance(value, str) else self._number(key)
        return f"coalesce({sql} {sign} ?, 0)", [*values, value]

    def is_one_of(self, key: str, options: Sequence[Value]) -> Bound:
        parts: list[Bound] = []
        texts = [option for option in options if isinstance(option, str)]
        numbers = [option for option in options if not isinstance(option, str)]
        for (sql, values), among in ((self._text(key), texts), (self._number(key), numbers)):
            if among:
                parts.append((f"coalesce({sql} IN ({', '.join('?' * len(among))}), 0)", [*values, *among]))
        return join_bounds(" OR ", parts)

    def is_like(self, key: str, pattern: str) -> Bound:
        sql, values = self._text(key)
        return f"coalesce({sql} LIKE ?, 0)", [*values, pattern]

    def contains(self, key: str, value: Value) -> Bound:
        kind, kind_values = self._type(key)
        found, found_values = self._value(key)
        member = "each.type = 'text' AND each.atom = ?" if isinstance(value, str) else "munjang_number(each.atom) = ?"
        in_list = f"(CASE {kind} WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each({found}) AS each WHERE {member}) END)"  # noqa: S608
        if not isinstance(value, str):
            return f"coalesce({in_list}, 0)", [*kind_values, *found_values, value]
        text, text_values = self._text(key)
        return f"(coalesce({in_list}, 0) OR coalesce(instr({text}, ?) > 0, 0))", [*kind_values, *found_values, value, *text_values, value]

    def _value(self, key: str) -> Bound:
        if key in OWN_KEYS:  # a key of the metadata goes first, even if it is null
            kind, kind_values = _metadata_type(key)
            found = "json_extract(documents.metadata, ?)"
            return f"(CASE WHEN {kind} IS NULL THEN documents.{key} ELSE {found} END)", [*kind_values, f'$."{key}"']
        if is_plain_key(key):
            return "json_extract(documents.metadata, ?)", [f'$."{key}"']
        return "(SELECT value FROM json_each(documents.metadata) WHERE key = ?)", [key]

    def _type(self, key: str) -> Bound:
        kind, values = _metadata_type(key)
        return (f"coalesce({kind}, 'text')" if key in OWN_KEYS else kind), values

    def _text(self, key: str) -> Bound:
        """Return the key's value if it is a text; lists and objects come out of JSON as texts too, so the type must be asked for."""
        kind, kind_values = self._type(key)
        found, found_values = self._value(key)
        return f"(CASE {kind} WHEN 'text' THEN {found} END)", [*kind_values, *found_values]

    def _number(self, key: str) -> Bound:
        sql, values = self._value(key)
        return f"munjang_number({sql})", values


def bind_postgres(value: Value) -> str | Decimal:
    """Return a filter's value as PostgreSQL compares it."""
    if isinstance(value, str):
        if "\x00" in value:
            raise UsageError(f"filter: {quote(value)} holds NUL, which no text in PostgreSQL does")
        return value
    return Decimal(repr(float(value))) if isinstance(value, float) else Decimal(int(value))


class _PostgreSQL:
    def is_null(self, key: str) -> Bound:
        sql, values = self._value(key)
        return f"coalesce({sql} = 'null'::jsonb, true)", values

    def compare(self, key: str, sign: str, value: Value) -> Bound:
        return self._compare(self._value(key), sign, value)

    def is_one_of(self, key: str, options: Sequence[Value]) -> Bound:
        return join_bounds(" OR ", [self.compare(key, "=", option) for option in options])

    def is_like(self, key: str, pattern: str) -> Bound:
        sql, values = self._text(self._value(key))
        return f"coalesce({_LOWER.format(sql)} LIKE {_LOWER.format('%s')} ESCAPE '', false)", [*values, bind_postgres(pattern)]

    def contains(self, key: str, value: Value) -> Bound:
        sql, values = self._metadata(key)  # a document's own id and text are no lists
        member, bound = self._compare(("each", []), "=", value)
        members = f"jsonb_array_elements(CASE jsonb_typeof({sql}) WHEN 'array' THEN {sql} ELSE '[]'::jsonb END)"
        in_list = f"EXISTS (SELECT 1 FROM {members} AS each WHERE {member})"  # noqa: S608
        if not isinstance(value, str):
            return in_list, [*values, *values, *bound]
        text, text_values = self._text(self._value(key))
        return f"({in_list} OR coalesce(strpos({text}, %s) > 0, false))", [*values, *values, *bound, *text_values, value]

    def _value(self, key: str) -> Bound:
        if key in OWN_KEYS:  # a key of the metadata goes first, even if it is null
            return f"coalesce(documents.found -> %s, to_jsonb(documents.{key}))", [key]
        return self._metadata(key)

    def _metadata(self, key: str) -> Bound:
        return ("NULL::jsonb", []) if "\x00" in key else ("(documents.found -> %s)", [key])

    def _text(self, found: Bound) -> Bound:
        sql, values = found
        return f"(CASE jsonb_typeof({sql}) WHEN 'string' THEN {sql} #>> '{{}}' END)", [*values, *values]

    def _compare(self, found: Bound, sign: str, value: Value) -> Bound:
        if isinstance(value, str):
            sql, values = self._text(found)
            return f'coalesce({sql} COLLATE "C" {sign} %s, false)', [*values, bind_postgres(value)]
        sql, values = found
        return f"coalesce(munjang_number({sql}) {sign} %s, false)", [*values, bind_postgres(value)]
