"""Data frames in a library: rows become documents, other columns metadata that JSON can hold, and what is missing is said by its row."""

from __future__ import annotations

import builtins
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError, UsageError
from munjang.library.library import Library
from munjang.library.records import documents
from munjang.text.records import BadLines

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS = {"id": ["a", "b"], "text": ["rain", "snow"], "year": [2024, 2025]}


@pytest.mark.parametrize("frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)], ids=["pandas", "polars"])
def test_a_frame_is_stored_row_by_row(tmp_path, encoder, frame):
    with Library.open(tmp_path / "a.db", encoder, analyser="bigrams") as library:
        assert library.add(frame).added == 2
        assert [(each.id, each.text, each.metadata) for each in library.get(["a", "b"])] == [
            ("a", "rain", {"year": 2024}),
            ("b", "snow", {"year": 2025}),
        ]
        assert library.update(frame).unchanged == 2


def test_a_table_of_arrow_is_one_too():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(COLUMNS)
    assert [(each.id, each.metadata) for each in documents(table)] == [("a", {"year": 2024}), ("b", {"year": 2025})]


def test_more_rows_than_are_read_at_once():
    texts = [f"day {number}" for number in range(2_500)]
    for frame in (pd.DataFrame({"text": texts, "n": range(2_500)}), pl.DataFrame({"text": texts, "n": range(2_500)})):
        assert [(each.text, each.metadata["n"]) for each in documents(frame)] == [(text, n) for n, text in enumerate(texts)]


def test_an_index_that_is_called_id_holds_the_ids():
    frame = pd.DataFrame(COLUMNS).set_index("id")
    assert [each.id for each in documents(frame)] == ["a", "b"]
    assert [(each.id, each.text) for each in documents(frame["text"])] == [("a", "rain"), ("b", "snow")]
    assert [each.id for each in documents(pd.DataFrame(COLUMNS).drop(columns="id"))] == [
        each.id for each in documents(["rain", "snow"])
    ]  # another index says nothing


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1.5, np.nan], [1.5, None]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        (pd.array([True, None], dtype="boolean"), [True, None]),
        (pd.to_datetime(["2025-01-02 03:04", None]), ["2025-01-02T03:04:00", None]),
        (pd.Categorical(["x", None]), ["x", None]),
        (pd.Series([np.int64(3), np.float32(0.5)], dtype=object), [3, 0.5]),
        (pd.Series([np.array([1, 2]), None], dtype=object), [[1, 2], None]),
        (pd.Series([date(2025, 1, 2), datetime(2025, 1, 2, tzinfo=UTC)], dtype=object), ["2025-01-02", "2025-01-02T00:00:00+00:00"]),
        (pd.Series([np.datetime64("2025-01-02"), np.datetime64("NaT")], dtype=object), ["2025-01-02", None]),
    ],
    ids=["float", "Int64", "boolean", "datetime", "category", "numpy numbers", "arrays", "dates", "numpy dates"],
)
def test_cells_become_what_json_can_hold(cells: Any, expected: list[object]):
    found = [each.metadata["x"] for each in documents(pd.DataFrame({"text": ["rain", "snow"], "x": cells}))]
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


def test_cells_of_polars_too():
    frame = pl.DataFrame(
        {"text": ["a", "b"], "f": [float("nan"), 1.5], "d": [date(2025, 1, 2), None], "l": [[1], None], "s": [{"k": 1}, {"k": None}]}
    )
    assert [each.metadata for each in documents(frame)] == [
        {"f": None, "d": "2025-01-02", "l": [1], "s": {"k": 1}},
        {"f": 1.5, "d": None, "l": None, "s": {"k": None}},
    ]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_missing_text_is_named_by_its_row_or_counted(make):
    frame = make({"text": ["rain", None, "snow"]})
    with pytest.raises(InputError, match=r'^row 1 \(from 0\): "text" is missing, expected a text\n  .*df\.dropna\(subset=\["text"\]\)'):
        list(documents(frame))
    bad = BadLines()
    assert [each.text for each in documents(frame, bad=bad)] == ["rain", "snow"]
    assert bad.count == 1


def test_a_nan_in_the_place_of_a_text_of_a_mapping_is_missing_too():
    with pytest.raises(InputError, match='record 2: "text" is missing'):
        list(documents([{"text": "rain"}, {"text": float("nan")}]))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"body": ["rain"], "n": [1]}), r"the DataFrame has 'body', 'n', expected a column \"text\""),
        (pd.DataFrame([["rain", "snow"]], columns=["text", "text"]), "the DataFrame has the column 'text' twice"),
        (pd.DataFrame({"text": ["rain", "snow"], "id": [1, None]}), r"row 0 \(from 0\): the id is 1 \(float\), expected a text or a whole"),
        (pd.DataFrame({"text": ["rain"], "t": [pd.Timedelta("1h")]}), r"row 0 \(from 0\): the metadata hold .*Timedelta"),
        (pl.DataFrame({"text": ["rain"]}).lazy(), "found a LazyFrame, which is not computed yet\n  compute or collect it first"),
    ],
    ids=["no text", "twice", "float ids", "time spans", "lazy"],
)
def test_a_frame_that_cannot_be_taken_says_why(frame, words):
    with pytest.raises((InputError, UsageError), match=words):
        list(documents(frame))


@pytest.mark.parametrize("column", ["shape", "iloc", "slice", "column_names", "index", "columns"])
def test_a_column_may_have_the_name_of_a_method(column):
    [made] = documents(pd.DataFrame({"text": ["rain"], column: [1]}))
    assert made.metadata == {column: 1}


def test_plain_values_work_where_pandas_and_polars_are_not_installed(monkeypatch):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("pandas", "polars"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert [each.text for each in documents(["rain", {"text": "snow", "n": np.int64(3)}])] == ["rain", "snow"]


@pytest.mark.parametrize("wrong", ["ab", ["a", 3], 3, {"a": 1}, None], ids=str)
def test_ids_that_are_none_are_refused(tmp_path, encoder, wrong):
    with Library.open(tmp_path / "a.db", encoder, analyser="bigrams") as library:
        library.add([{"id": "a", "text": "rain"}])
        for verb in (library.get, library.remove, lambda ids: library.search("rain", like=ids)):
            with pytest.raises(UsageError, match="expected"):
                verb(wrong)
        assert library.info().documents == 1
