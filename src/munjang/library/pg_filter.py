"""A filter in PostgreSQL → the condition that passages meet, whose documents are found by an index over all metadata.

The index holds terms: a number for each key with its value, one more for a text that reads as a number, and those of a list's members. What
equals a value, is one of several, or is a list with a number in it, has the value's term; so the terms say which documents can fit, and the
condition itself is asked of these alone. Comparisons, patterns, parts of texts and negations have no term.

Where an index of vectors can be walked instead, terms are asked only if few documents have them. A cluster has no index over metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from munjang.library.pg_cluster import ClusterReader
from munjang.library.pg_connections import Executes, run
from munjang.library.where import OWN_KEYS, AllOf, AnyOf, Compare, Condition, Contains, OneOf, Value
from munjang.library.where_sql import Bound, bind_postgres, join_bounds, where_postgres

if TYPE_CHECKING:
    import psycopg

READ_FACTOR = 14
"""Reading costs the same for each document that fits, a walk over vectors looks at all / fitting passages for each hit. So reading is
faster up to a multiple of the square root of all documents; the measured one is 10, and what is read is exact."""

JOIN_DOCUMENTS = "JOIN documents ON documents.number = passages.document"
METADATA_INDEX = "documents_by_metadata"
_TEXT_TERM = "hashtextextended(({key} || '=' || {value}) COLLATE \"C\", 0)"
_NUMBER_TERM = "hashtextextended(({key} || '#' || trim_scale({value})::text) COLLATE \"C\", 0)"
_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION munjang_terms(found jsonb) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (
        SELECT coalesce(array_agg(term), '{{}}')
        FROM jsonb_each(found) AS pair (key, value),
            jsonb_array_elements(CASE jsonb_typeof(pair.value) WHEN 'array' THEN pair.value ELSE jsonb_build_array(pair.value) END)
                AS one (value),
            unnest(ARRAY[
                CASE jsonb_typeof(one.value) WHEN 'string' THEN {_TEXT_TERM.format(key="pair.key", value="(one.value #>> '{}')")} END,
                {_NUMBER_TERM.format(key="pair.key", value="munjang_number(one.value)")}
            ]) AS each (term)
        WHERE term IS NOT NULL)"""  # noqa: S608


def has_index(connection: Executes, name: str) -> bool:
    """Say whether a library has an index of this name."""
    return bool(run(connection, "SELECT to_regclass(quote_ident(current_schema()) || '.' || %s) IS NOT NULL", (name,)).fetchone()[0])


def make_metadata_index(connection: psycopg.Connection[Any]) -> None:
    """Make the index over metadata, inside the caller's transaction."""
    run(connection, _FUNCTION)
    run(connection, f"CREATE INDEX {METADATA_INDEX} ON documents USING gin (munjang_terms(found))")
    run(connection, "ANALYZE documents")  # how many documents have a term


@dataclass(frozen=True)
class PassageFilter:
    """What a query over `passages` joins, and the condition that it adds."""

    join: str = ""
    condition: str = "(1 = 1)"
    values: list[Any] = field(default_factory=list)
    by_terms: bool = False


def filter_passages(connection: Executes, where: Condition | None, *, can_walk: bool = False) -> PassageFilter:
    """Return how a query reads the passages of the documents that meet a filter; `can_walk` says that it has an index of vectors."""
    if where is None:
        return PassageFilter()
    condition, values = where_postgres(where)
    terms = _write_terms(where)
    if (
        terms is None
        or isinstance(connection, ClusterReader)
        or not has_index(connection, METADATA_INDEX)
        or (can_walk and _are_many(connection, terms))
    ):
        return PassageFilter(JOIN_DOCUMENTS, condition, values)
    can_fit, asked = terms
    fitting = f"SELECT number FROM documents WHERE {can_fit} AND {condition}"  # noqa: S608
    return PassageFilter("", f"passages.document = ANY (ARRAY({fitting}))", [*asked, *values], by_terms=True)


def _are_many(connection: Executes, terms: Bound) -> bool:
    """Say whether the server expects more documents with these terms than are read faster than walked over."""
    can_fit, asked = terms
    plan = run(connection, f"EXPLAIN (FORMAT JSON) SELECT FROM documents WHERE {can_fit}", asked).fetchone()[0]
    (documents,) = run(connection, "SELECT reltuples FROM pg_class WHERE oid = 'documents'::regclass").fetchone()
    return bool(plan[0]["Plan"]["Plan Rows"] > READ_FACTOR * max(documents, 0) ** 0.5)


def _write_terms(condition: Condition) -> Bound | None:
    """Return what is true for every document that meets the condition, by terms; None where terms tell nothing."""
    match condition:
        case Compare(key, "=", value) if key not in OWN_KEYS:
            return _write_overlap([(key, value)])
        case OneOf(key, values) if key not in OWN_KEYS and values:
            return _write_overlap([(key, value) for value in values])
        case Contains(key, value) if not isinstance(value, str):  # a text may be a part of a text
            return _write_overlap([(key, value)])
        case AllOf(conditions):
            known = [bound for each in conditions if (bound := _write_terms(each)) is not None]
            return join_bounds(" AND ", known) if known else None
        case AnyOf(conditions):
            known = [bound for each in conditions if (bound := _write_terms(each)) is not None]
            return join_bounds(" OR ", known) if known and len(known) == len(conditions) else None
        case _:
            return None


def _write_overlap(pairs: list[tuple[str, Value]]) -> Bound | None:
    if any("\x00" in key for key, _ in pairs):  # which no text in PostgreSQL holds
        return None
    terms = (_TEXT_TERM if isinstance(value, str) else _NUMBER_TERM for _, value in pairs)
    marks = ", ".join(term.format(key="%s::text", value="%s::text" if term is _TEXT_TERM else "%s::numeric") for term in terms)
    return f"munjang_terms(documents.found) && ARRAY[{marks}]", [each for key, value in pairs for each in (key, bind_postgres(value))]
