"""A condition → an SQL expression over `documents.found` (metadata as jsonb) with bound values, for PostgreSQL.

Keys and values are bound, never written into the statement. The expression means what `where.matches` says, and is never null. Numbers are
compared as PostgreSQL's numeric, which holds every number that JSON can; texts by code point.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from munjang.errors import UsageError, quote
from munjang.library.where import OWN_KEYS, AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf, Value

Bound: TypeAlias = tuple[str, list[object]]
"""An expression, and what stands in for its %s."""

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
"""What `where.number_of` says, in SQL."""

_LOWER = "translate({}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"


def where_postgres(condition: Condition | None) -> Bound:
    """Return the expression of a condition; no condition is always true.

    >>> where_postgres(Compare("year", ">", 2020))
    ('coalesce(munjang_number((documents.found -> %s)) > %s, false)', ['year', Decimal('2020')])
    """
    match condition:
        case None:
            return "true", []
        case AllOf(()):
            return "(1 = 1)", []
        case AnyOf(()) | OneOf(_, ()):
            return "(1 = 0)", []
        case AllOf(conditions):
            return _joined(" AND ", conditions)
        case AnyOf(conditions):
            return _joined(" OR ", conditions)
        case Not(inner):
            sql, values = where_postgres(inner)
            return f"(NOT {sql})", values
        case IsNull(key):
            sql, values = _value_of(key)
            return f"coalesce({sql} = 'null'::jsonb, true)", values
        case Compare(key, sign, value):
            return _compare(_value_of(key), sign, value)
        case OneOf(key, options):
            parts = [_compare(_value_of(key), "=", option) for option in options]
            return f"({' OR '.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]
        case Like(key, pattern):
            sql, values = _text_of(_value_of(key))
            return f"coalesce({_LOWER.format(sql)} LIKE {_LOWER.format('%s')} ESCAPE '', false)", [*values, *_bound(pattern)]
        case Contains(key, value):
            return _contains(_value_of(key), value)


def _joined(word: str, conditions: tuple[Condition, ...]) -> Bound:
    parts = [where_postgres(each) for each in conditions]
    return f"({word.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]


def _value_of(key: str) -> Bound:
    if key in OWN_KEYS:  # a key of the metadata goes first, even if it is null
        return f"coalesce(documents.found -> %s, to_jsonb(documents.{key}))", [key]
    return ("NULL::jsonb", []) if "\x00" in key else ("(documents.found -> %s)", [key])


def _text_of(found: Bound) -> Bound:
    sql, values = found
    return f"(CASE jsonb_typeof({sql}) WHEN 'string' THEN {sql} #>> '{{}}' END)", [*values, *values]


def _compare(found: Bound, sign: str, value: Value) -> Bound:
    if isinstance(value, str):
        sql, values = _text_of(found)
        return f'coalesce({sql} COLLATE "C" {sign} %s, false)', [*values, *_bound(value)]
    sql, values = found
    return f"coalesce(munjang_number({sql}) {sign} %s, false)", [*values, *_bound(value)]


def _contains(found: Bound, value: Value) -> Bound:
    sql, values = found
    member, bound = _compare(("each", []), "=", value)
    members = f"jsonb_array_elements(CASE jsonb_typeof({sql}) WHEN 'array' THEN {sql} ELSE '[]'::jsonb END)"
    in_list = f"EXISTS (SELECT 1 FROM {members} AS each WHERE {member})"  # noqa: S608
    if not isinstance(value, str):
        return in_list, [*values, *values, *bound]
    text, text_values = _text_of(found)
    return f"({in_list} OR coalesce(strpos({text}, %s) > 0, false))", [*values, *values, *bound, *text_values, value]


def _bound(value: Value) -> list[object]:
    if isinstance(value, str):
        if "\x00" in value:
            raise UsageError(f"filter: {quote(value)} holds NUL, which no text in PostgreSQL does")
        return [value]
    return [Decimal(repr(float(value))) if isinstance(value, float) else Decimal(int(value))]
