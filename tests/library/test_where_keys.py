"""A filter that asks for a key which no document has is named, never a quiet "nothing was found"."""

from __future__ import annotations

import warnings

import pytest

from munjang.errors import UsageError
from munjang.library.search import UnknownKeyWarning

RECORDS = [
    {"id": "a", "text": "snow on the river", "year": 2021, "kind": "news"},
    {"id": "b", "text": "rain in the city", "year": 2019, "Autor": "Kim"},
]


@pytest.fixture
def filled(library):
    library.add(RECORDS)
    return library


@pytest.mark.parametrize(
    ("where", "key", "meant"),
    [
        ("yaer >= 2020", "yaer", "did you mean 'year'?"),
        ("not yaer >= 2020", "yaer", "did you mean 'year'?"),
        ("year >= 2020 and knid = 'news'", "knid", "did you mean 'kind'?"),
        ("autor = 'Kim'", "autor", "did you mean 'Autor'?"),
        ("zzz is null", "zzz", "there are: 'Autor', 'kind', 'year'"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_one(filled, where, key, meant):
    with pytest.warns(UnknownKeyWarning, match=f"no document has the metadata key '{key}'; ") as caught:
        filled.search("snow", where=where)
    assert str(caught[0].message).endswith(meant)
    assert caught[0].filename == __file__
    with pytest.warns(UnknownKeyWarning, match=key):
        filled.search_many(["snow"], where=where)
    with pytest.raises(UsageError, match=f"no document has the metadata key '{key}'"):
        filled.search("snow", where=where, strict=True)
    with pytest.raises(UsageError, match=key):
        filled.search_many(["snow"], where=where, strict=True)


def test_notes_are_handed_out_instead_of_warned_of(filled):
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert filled.search("snow", where="yaer >= 2020", notes=notes) == []
    assert notes == ["no document has the metadata key 'yaer'; did you mean 'year'?"]


@pytest.mark.parametrize("where", ["year >= 2030", "kind = 'news'", "Autor is null", "id = 'a'", "text contains 'rain'"])
def test_a_key_that_some_document_has_is_no_matter_however_little_is_found(filled, where):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled.search("snow", where=where, strict=True)


def test_an_empty_library_knows_no_key_and_says_nothing(library):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.search("snow", where="year > 3") == []


def test_a_known_key_is_looked_for_once_a_commit(filled, monkeypatch):
    asked = []
    real = filled.store.has_key
    monkeypatch.setattr(filled.store, "has_key", lambda key: asked.append(key) or real(key))
    filled.search("snow", where="year > 3")
    filled.search("snow", where="year > 4 and kind = 'news'")
    assert asked == ["year", "kind"]
    filled.remove(["a"])
    with pytest.warns(UnknownKeyWarning, match="kind"):
        filled.search("snow", where="kind = 'news'")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 'a'", {"a"}),
        ("id in ('b', 'c')", {"b"}),
        ("not id = 'a'", {"b"}),
        ("id like 'A%'", {"a"}),
        ("text contains 'rain'", {"b"}),
        ("text like '%river' and year = 2021", {"a"}),
        ("id is null", set()),
        ("text > 's'", {"a"}),
    ],
)
def test_a_documents_id_and_text_can_be_asked_for(filled, where, expected):
    assert {hit.id for hit in filled.search("snow", where=where)} == expected


def test_metadata_of_that_name_go_before_the_documents_own(library):
    library.add([{"id": "a", "text": "snow", "metadata": {"id": 7, "text": None}}])
    assert [hit.id for hit in library.search("snow", where="id = 7 and text is null")] == ["a"]
    assert library.search("snow", where="id = 'a'") == []
