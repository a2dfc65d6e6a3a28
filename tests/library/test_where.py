"""Filters: what they mean, how they are read, and that nothing in them becomes SQL."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.library.where import MAX_TERMS, AllOf, AnyOf, Compare, Contains, IsNull, Like, Not, OneOf, matches, parse_where
from munjang.library.where_sql import add_functions, where_sqlite

KEYS = st.sampled_from(["a", "b", 'q"uote', "back\\slash", "점", "a.b", "x'; DROP TABLE documents; --"])
TEXTS = st.text("ab%_'\"\\소 1.", max_size=5)
VALUES = st.one_of(TEXTS, st.integers(-3, 3), st.floats(-3, 3, width=16), st.booleans())
FOUND = st.one_of(VALUES, st.none(), st.lists(VALUES, max_size=3), st.dictionaries(st.just("a"), VALUES, max_size=1))
SIGNS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
TESTS = st.one_of(
    st.builds(Compare, KEYS, SIGNS, VALUES),
    st.builds(OneOf, KEYS, st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, KEYS, TEXTS),
    st.builds(Contains, KEYS, VALUES),
    st.builds(IsNull, KEYS),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def documents():
    connection = sqlite3.connect(":memory:")
    add_functions(connection)
    connection.execute("CREATE TABLE documents (metadata TEXT)")
    yield connection
    connection.close()


@settings(max_examples=600, deadline=None)
@given(condition=CONDITIONS, metadata=st.dictionaries(KEYS, FOUND, max_size=4))
def test_sqlite_and_python_agree_on_what_a_condition_means(documents, condition, metadata):
    documents.execute("DELETE FROM documents")
    documents.execute("INSERT INTO documents VALUES (?)", (json.dumps(metadata, ensure_ascii=False),))
    sql, values = where_sqlite(condition)
    [[found]] = documents.execute(f"SELECT {sql} FROM documents", values)
    assert found in (0, 1)
    assert bool(found) == matches(condition, metadata)


@pytest.mark.parametrize(("word", "expected"), [("or", 1), ("and", 0)])
def test_sqlite_takes_as_many_tests_as_a_filter_may_have(documents, word, expected):
    documents.execute("DELETE FROM documents")
    documents.execute("INSERT INTO documents VALUES (?)", (json.dumps({f"k{MAX_TERMS - 1}": 1}),))
    sql, values = where_sqlite(parse_where(f" {word} ".join(f"k{number} = 1" for number in range(MAX_TERMS))))
    assert documents.execute(f"SELECT {sql} FROM documents", values).fetchone() == (expected,)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("year >= 2020", Compare("year", ">=", 2020)),
        ("year == -1.5e2", Compare("year", "=", -150.0)),
        ("제목 = '그''s'", Compare("제목", "=", "그's")),
        ('"odd key" <> true', Compare("odd key", "!=", True)),
        ("a in ('x', 2)", OneOf("a", ("x", 2))),
        ("a not in (1)", Not(OneOf("a", (1,)))),
        ("a LIKE '%b%'", Like("a", "%b%")),
        ("tags contains 'x'", Contains("tags", "x")),
        ("a is not null", Not(IsNull("a"))),
        ("a = 1 or b = 2 and c = 3", AnyOf((Compare("a", "=", 1), AllOf((Compare("b", "=", 2), Compare("c", "=", 3)))))),
        ("not (a = 1 or b = 2)", Not(AnyOf((Compare("a", "=", 1), Compare("b", "=", 2))))),
        ("a = '\u1112\u1161\u11ab'", Compare("a", "=", "한")),
    ],
)
def test_a_filter_is_read_as_it_is_written(where, expected):
    assert parse_where(where) == expected


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("", "character 1: found the end"),
        ("year >", "character 7: found the end"),
        ("year >= 2020 and", "character 17"),
        ("year = = 3", "character 8"),
        ("a = 'open", "character 5"),
        ("a = b", "character 5"),
        ("(a = 1", "character 7"),
        ("a = 1; DROP TABLE documents", "character 6"),
        ("a = 1 -- x", "character 7"),
        ("in = 3", "character 1"),
        ("a ~ 3", "character 3"),
        ("a = 12abc", "character 5"),
    ],
)
def test_an_error_points_at_its_place(where, place):
    with pytest.raises(UsageError) as error:
        parse_where(where)
    assert place in str(error.value)


def test_deep_and_long_filters_are_refused_and_not_overflown():
    for where in ("(" * 5_000 + "a=1" + ")" * 5_000, "not " * 5_000 + "a=1", " and ".join(["a=1"] * 5_000), "a = '" + "x" * 10**6 + "'"):
        with pytest.raises(UsageError):
            parse_where(where)


def test_the_largest_filter_that_is_read_can_be_asked(documents):
    for where in (
        " and ".join(["a=1"] * 500),
        f"a in ({', '.join(map(str, range(5_000)))})",
        "(" * 19 + "a=1" + ")" * 19,
        "not " * 19 + "a=1",
    ):
        sql, values = where_sqlite(parse_where(where))
        documents.execute(f"SELECT {sql} FROM documents", values).fetchall()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_usage_error(documents, where):
    try:
        sql, values = where_sqlite(parse_where(where))
    except UsageError:
        return
    documents.execute(f"SELECT {sql} FROM documents", values).fetchall()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"a in ({', '.join(map(str, range(5_001)))})", "at most 5,000 values"),
        ("a like 7", "a pattern 'in single quotes' of at most 1,000 characters"),
        (f"a like '{'x' * 1_001}'", "a pattern 'in single quotes' of at most 1,000 characters"),
    ],
    ids=["too many values", "no pattern", "a long pattern"],
)
def test_a_filter_beyond_the_limits_names_them(where, expected):
    with pytest.raises(UsageError, match=expected):
        parse_where(where)


@pytest.mark.parametrize(
    ("found", "value", "expected"),
    [(["a", 1], "a", True), (["a", 1], 1, True), (["ab"], "a", False), ("ab", "a", True), (12, 1, False), ([], "a", False)],
)
def test_contains_asks_a_list_for_a_member_and_a_text_for_a_part(documents, found, value, expected):
    condition = Contains("a", value)
    assert matches(condition, {"a": found}) is expected
    documents.execute("DELETE FROM documents")
    documents.execute("INSERT INTO documents (metadata) VALUES (?)", (json.dumps({"a": found}),))
    sql, values = where_sqlite(condition)
    assert bool(documents.execute(f"SELECT {sql} FROM documents", values).fetchone()[0]) is expected
