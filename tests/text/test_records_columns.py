"""Which column holds the text is told from the first rows together, never from one, and an id is never taken for a text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from munjang.errors import InputError
from munjang.text.records import SAMPLE_ROWS, BadLines, GuessedColumnWarning, Row, RowSample, choose_columns, make_records, make_sample


def rows(*values: dict[str, object]) -> list[Row]:
    return [Row("f.jsonl", line, dict(each)) for line, each in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["id", "text"], "text"),
        (["Title", "Sentence"], "Sentence"),
        (["번호", "문장"], "문장"),
        (["anything"], "anything"),
        (["title", "id"], "title"),
        (["id", "utterance"], "utterance"),
        (["GUID", "utterance"], "utterance"),
    ],
)
@pytest.mark.parametrize("filled", [0, 1])
def test_the_text_column_is_a_well_known_one_or_the_only_one_beside_ids(columns, expected, filled):
    sample = RowSample(filled, dict.fromkeys(columns, filled))
    assert choose_columns(sample, where="f").text == expected


def test_a_first_record_without_a_text_does_not_make_its_id_the_text():
    given = rows({"id": "x"}, {"id": "a", "sentence": "It rains."}, {"id": "b", "sentence": "It snows."})
    bad = BadLines()
    assert [record.text for record in make_records(given, bad=bad)] == ["It rains.", "It snows."]
    assert (bad.count, bad.first) == (1, ["f.jsonl line 1: no column 'sentence', found 'id'"])
    with pytest.raises(InputError, match="f.jsonl line 1: no column 'sentence', found 'id'"):
        list(make_records(given))


@pytest.mark.parametrize("column", ["id", "_id", "Id", "doc_id", "guid"])
def test_ids_alone_are_no_texts(column):
    with pytest.raises(InputError, match=rf"f.jsonl: which column holds the text\? found '{column}'\n  name it with --text-column"):
        list(make_records(rows({column: "x"}, {column: "y"})))


def test_a_column_of_numbers_is_no_text():
    assert choose_columns(make_sample(rows({"n": 1, "said": "It rains."}, {"n": 2, "said": "It snows."})), where="f").text == "said"


def test_a_column_that_few_rows_fill_gives_way_to_one_that_most_fill():
    given = rows({"text": "one"}, *({"sentence": f"It rains {day} days."} for day in range(9)))
    assert choose_columns(make_sample(given), where="f").text == "sentence"


def test_a_well_known_column_that_no_row_fills_is_still_the_texts():
    given = rows({"sentence": "", "label": "x"}, {"sentence": " ", "label": "y"})
    assert choose_columns(make_sample(given), where="f").text == "sentence"


@pytest.mark.parametrize(
    ("values", "guessed"),
    [
        ({"text": "a", "title": "b"}, None),
        ({"id": "1", "sentence": "a", "year": 2024}, None),
        ({"title": "a", "body": "b"}, "body"),
        ({"sentence": "a", "label": "b"}, "sentence"),
    ],
)
def test_a_choice_among_several_columns_of_text_is_said(values, guessed):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        list(make_records(rows(values, values)))
    assert [str(each.message) for each in said] == (
        [] if guessed is None else [f"text column: {guessed!r} (guessed; name it with text_column)"]
    )
    assert [each.message.for_shell for each in said if isinstance(each.message, GuessedColumnWarning)] == (
        [] if guessed is None else [f"text column: {guessed!r} (guessed; name it with --text-column)"]
    )


def test_a_named_column_is_no_guess():
    (record,) = make_records(rows({"title": "a", "body": "b"}), text_column="title")
    assert record.text == "a"


def test_no_more_than_a_sample_is_read_ahead():
    read = 0

    def endless() -> Iterator[Row]:
        nonlocal read
        while True:
            read += 1
            yield Row("f", read, {"text": "rain"})

    next(make_records(endless()))
    assert read == SAMPLE_ROWS


def test_long_rows_make_a_short_sample():
    read = 0

    def endless() -> Iterator[Row]:
        nonlocal read
        while True:
            read += 1
            yield Row("f", read, {"text": "r" * 2**20})

    next(make_records(endless()))
    assert read == 4


def test_the_id_column_may_begin_behind_the_first_row_and_a_row_without_an_id_has_none():
    assert [record.id for record in make_records(rows({"text": "a"}, {"text": "b", "id": 2}))] == [None, "2"]


def test_a_named_id_column_must_be_there():
    with pytest.raises(InputError, match="f.jsonl line 1: no column 'key', found 'text'"):
        list(make_records(rows({"text": "a"}), id_column="key"))
