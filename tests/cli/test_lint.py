from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import write_pairs, write_sts

Call = Callable[..., Any]


def _checks(outcome: Any) -> set[str]:
    return {finding["check"] for finding in outcome.json["findings"]}


def test_good_data_leaves_exit_code_0(munjang: Call, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv")
    found = munjang("lint", file)
    assert (found.code, found.out) == (0, "nothing found\n")
    assert munjang("lint", file, "--json").json["findings"] == []


def test_inverted_labels_are_an_error_until_they_are_turned(munjang: Call, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", same="0", different="1")
    found = munjang("lint", file, "--json")
    assert found.code == 1
    assert "inverted-labels" in _checks(found)
    assert "error: 10 of 10 pairs of identical sentences" in munjang("lint", file).out
    assert munjang("lint", file, "--label", "0=same", "--label", "1=different").code == 0


def test_scores_beyond_the_scale_are_errors_with_advice(munjang: Call, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv", scale=5)
    found = munjang("lint", file)
    assert found.code == 1
    assert "--scale 0 5" in found.out
    assert munjang("lint", file, "--scale", 0, 5).code == 0


def test_test_rows_in_the_training_file_are_errors(munjang: Call, tmp_path: Path) -> None:
    train, test = write_sts(tmp_path / "train.tsv"), write_sts(tmp_path / "test.tsv")
    found = munjang("lint", train, test, "--json", "-o", tmp_path / "report.json")
    assert found.code == 1
    assert "overlap-exact" in _checks(found)
    assert found.json["rows"] == [10, 10]
    assert (tmp_path / "report.json").is_file()


def test_a_second_file_of_another_kind_is_read_as_it_is_told(munjang: Call, tmp_path: Path) -> None:
    train = write_sts(tmp_path / "train.tsv")
    test = tmp_path / "test.csv"
    test.write_text("left,right,grade\nthe rain,the sun,5\nthe cat,the dog,90\n", encoding="utf-8")
    assert munjang("lint", train, test).code == 3
    columns = [part for pair in ("a=left", "b=right", "score=grade") for part in ("--test-column", pair)]
    found = munjang("lint", train, test, *columns, "--test-scale", 0, 100, "--json")
    assert (found.code, found.json["rows"]) == (0, [10, 2])
    alone = munjang("lint", train, "--test-scale", 0, 100)
    assert (alone.code, "are for a second file" in alone.err) == (2, True)


def test_one_label_only_is_an_error(munjang: Call, tmp_path: Path) -> None:
    found = munjang("lint", "-", "--json", stdin="sentence1,sentence2,label\nthe rain,the sun,1\nthe cat,the dog,1\n")
    assert found.code == 1
    assert "one-class" in _checks(found)


@pytest.mark.parametrize(("content", "code"), [("", 3), ("x,y\n1,2\n", 3)])
def test_what_is_no_data_set_is_bad_input(munjang: Call, tmp_path: Path, content: str, code: int) -> None:
    file = tmp_path / "data.csv"
    file.write_text(content, encoding="utf-8")
    assert munjang("lint", file).code == code
    assert munjang("lint", "-", "-").code == 2
