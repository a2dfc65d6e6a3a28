import pytest

from munjang.errors import InputError
from munjang.text.records import Row, make_records


def test_an_unguessable_text_column_lists_the_columns():
    with pytest.raises(InputError, match="f: which column holds the text\\? found 'a', 'b'"):
        list(make_records([Row("f", 1, {"a": "x", "b": "y"})]))


def test_a_missing_column_names_the_nearest():
    with pytest.raises(InputError, match="f line 1: no column 'sentense', found 'id', 'sentence'; did you mean 'sentence'\\?"):
        list(make_records([Row("f", 1, {"id": "1", "sentence": "x"})], text_column="sentense"))


def test_a_record_keeps_the_other_columns_and_its_place():
    (record,) = make_records([Row("f", 7, {"_id": 3, "title": "제목", "text": "글", "year": 2024})])
    assert (record.id, record.text, record.metadata, record.where) == ("3", "글", {"title": "제목", "year": 2024}, "f line 7")


def test_columns_can_be_chosen():
    (record,) = make_records([Row("f", 1, {"key": "k", "a": "x", "b": "y"})], text_column="b", id_column="key")
    assert (record.id, record.text, record.metadata) == ("k", "y", {"a": "x"})


def test_a_null_id_is_no_id():
    (record,) = make_records([Row("f", 1, {"id": None, "text": "y"})])
    assert record.id is None
