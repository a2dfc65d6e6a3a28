"""The layout of a JSON file is told from its first rows together, so that one row without a key does not decide it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from munjang.data.layouts import peek, recognise
from munjang.data.read import ReadOptions, read_any
from munjang.errors import InputError

SCORED = [{"sentence1": f"a {n}", "sentence2": f"b {n}", "score": n / 10} for n in range(5)]
PAIRS = [{"anchor": f"a {n}", "positive": f"b {n}"} for n in range(5)]


def write(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_first_row_without_a_score_does_not_make_scored_pairs_of_another_kind(tmp_path: Path) -> None:
    path = write(tmp_path, {"sentence1": "x", "sentence2": "y"}, *SCORED)
    assert recognise(path)[0].kind == "scored"
    with pytest.raises(InputError, match=r"data.jsonl line 1: score is 'None', expected a number"):
        read_any(path)
    data = read_any(path, ReadOptions(skip_bad=True))
    assert (len(data.rows), len(data.skipped)) == (5, 1)


def test_a_key_that_few_rows_have_does_not_decide_the_kind(tmp_path: Path) -> None:
    path = write(tmp_path, {"anchor": "x", "positive": "y", "negative": "z"}, *PAIRS)
    assert recognise(path)[0].kind == "pairs"
    assert peek(path).rare == ("negative",)


def test_a_key_that_few_rows_have_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, *SCORED, {"sentence1": "x", "sentence2": "y", "grade": 1})
    columns: dict[str, str | int] = {"a": "sentence1", "b": "sentence2", "score": "grade"}
    assert len(read_any(path, ReadOptions(columns=columns, skip_bad=True)).rows) == 1
