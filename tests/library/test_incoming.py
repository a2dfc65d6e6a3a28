"""What a record may hold, and how what it may not hold is told."""

from __future__ import annotations

import pytest

from munjang.errors import InputError
from munjang.library.incoming import MAX_DEPTH, documents


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
        ({"a": 2**63}, r"the metadata hold '9223372036854775808' \(int\), expected what JSON can hold"),
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
