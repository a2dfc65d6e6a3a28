"""What a record may hold, and how what it may not hold is told."""

from __future__ import annotations

import pytest

from munjang.errors import InputError, TextError
from munjang.library.library import Library
from munjang.library.records import MAX_DEPTH, documents
from munjang.text.records import BadLines


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_lists_objects_and_numbers_come_through_clean():
    given = {"tags": ["\u1112\u1161\u11ab", ("a", 1)], "place": {"\u1112\u1161\u11ab": 0.5, "none": None}, "yes": True, "n": 2**40}
    [made] = documents([{"text": "rain", **given}])
    assert made.metadata == {"tags": ["한", ["a", 1]], "place": {"한": 0.5, "none": None}, "yes": True, "n": 2**40}


@pytest.mark.parametrize("own", ["a word", ["a", "list"], 7, False], ids=str)
def test_metadata_that_is_no_object_is_a_value_like_others(own):
    [made] = documents([{"text": "rain", "metadata": own, "year": 2020}])
    assert made.metadata == {"year": 2020, "metadata": own}


def test_an_object_of_metadata_stands_beside_the_other_keys():
    [made] = documents([{"text": "rain", "metadata": {"year": 2021, "a": 1}, "year": 2020}])
    assert made.metadata == {"year": 2021, "a": 1}
    [made] = documents([{"text": "rain", "metadata": None}])
    assert made.metadata == {}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({3: "x"}, "a key of the metadata is a int, expected a text"),
        ({"a": {None: "x"}}, "a key of the metadata is a NoneType, expected a text"),
        ({"a": nested(MAX_DEPTH)}, f"the metadata are nested deeper than {MAX_DEPTH} levels"),
        ({"a": 2**63}, r"the metadata hold '9223372036854775808', expected whole numbers of at most 64 bits"),
        ({"a": float("-inf")}, r"the metadata hold '-inf' \(float\), expected what JSON can hold"),
        ({"a": [b"x"]}, r"the metadata hold .*\(bytes\), expected what JSON can hold"),
    ],
    ids=["key", "inner key", "deep", "large", "infinite", "bytes"],
)
def test_metadata_that_json_cannot_hold_are_refused_with_the_record(metadata, words):
    with pytest.raises(InputError, match=f"^record 2: {words}"):
        list(documents(["fine", {"text": "rain", "metadata": metadata}]))


def test_metadata_nested_as_deep_as_allowed_are_taken():
    [made] = documents([{"text": "rain", "a": nested(MAX_DEPTH - 1)}])
    assert made.metadata == {"a": nested(MAX_DEPTH - 1)}


def test_records_that_cannot_be_taken_are_passed_over_where_that_is_asked_for(tmp_path, encoder):
    records = ["rain", {"text": "  "}, {"id": "n", "text": "snow", "x": float("nan")}, {"no": "text"}, {"id": "s", "text": "sun"}]
    with Library.open(tmp_path / "a.munjang", encoder, analyser="bigrams") as library:
        with pytest.raises(TextError, match="record 2: the text is empty"):
            library.add(records)
        bad = BadLines()
        report = library.add(records, bad=bad)
        assert (report.added + report.unchanged, bad.count, library.info().documents) == (2, 3, 2)
        assert [message.split(":")[0] for message in bad.first] == ["record 2", "record 3", "record 4"]


def test_two_texts_with_one_id_are_counted_as_such(tmp_path, encoder):
    records = [{"id": "x", "text": "first"}, {"id": "y", "text": "other"}, {"id": "x", "text": "second"}, "rain", "rain"]
    with Library.open(tmp_path / "a.munjang", encoder, analyser="bigrams") as library:
        report = library.add(records)
        assert (report.added, report.replaced, report.unchanged, report.records) == (3, 1, 1, 5)
        assert library.get(["x"])[0].text == "second"
