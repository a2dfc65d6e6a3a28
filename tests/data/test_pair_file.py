"""Files of pairs are read row by row: any layout with two texts, every column kept, bad rows named before anything is computed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from munjang.data.pair_file import open_pairs
from munjang.data.read import ReadOptions
from munjang.errors import InputError, TextError, UsageError

ROWS = [("비가 온다", "It rains"), ('He said "hi"', "a, b"), ("cat", "dog")]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_labels_and_scores_do_not_matter_and_columns_are_kept(tmp_path: Path) -> None:
    lines = ["genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2", *(f"g\tf\ty\t{n}\t9\t{a}\t{b}" for n, (a, b) in enumerate(ROWS))]
    found = open_pairs(write(tmp_path / "korsts.tsv", "\n".join(lines) + "\n"))
    assert [(row.a, row.b) for row in found] == ROWS
    assert found.columns == ("genre", "filename", "year", "id", "score", "sentence1", "sentence2")
    assert [row.values["id"] for row in found] == ["0", "1", "2"]
    assert (len(found), found.layout.name, found.skipped) == (3, "korsts", 0)


def test_rows_that_the_makers_left_unlabelled_are_pairs_too(tmp_path: Path) -> None:
    rows = [{"sentence1": a, "sentence2": b, "gold_label": "-"} for a, b in ROWS]
    path = tmp_path / "snli.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert [(row.a, row.b) for row in open_pairs(path)] == ROWS


def test_a_file_without_a_header_and_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "비가 온다\tIt rains\tentailment\n눈이 온다\tIt snows\tneutral\n")
    assert [(row.a, row.b) for row in open_pairs(path)] == [("비가 온다", "It rains"), ("눈이 온다", "It snows")]
    swapped = open_pairs(path, ReadOptions(columns={"a": 1, "b": 0}))
    assert [row.a for row in swapped] == ["It rains", "It snows"]
    with pytest.raises(UsageError, match="expected a, b"):
        open_pairs(path, ReadOptions(columns={"a": 1}))
    with pytest.raises(UsageError, match="holds texts"):
        open_pairs(path, ReadOptions(layout="paraKQC"))


def test_objects_with_different_keys_have_all_their_columns(tmp_path: Path) -> None:
    rows = [{"a": "cat", "b": "dog"}, {"a": "sun", "b": "rain", "note": "late"}, {"a": "x", "b": "y"}]
    found = open_pairs(write(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert found.columns == ("a", "b", "note")


@pytest.mark.parametrize("bad", ["cat,", ",dog", "cat,   ", "cat,dog,more"], ids=["second", "first", "blank", "too many"])
def test_a_bad_row_is_named_or_left_out_and_counted(tmp_path: Path, bad: str) -> None:
    path = write(tmp_path / "x.csv", f"a,b\nsun,rain\n{bad}\nsnow,ice\n")
    with pytest.raises(InputError, match="x.csv line 3"):
        open_pairs(path)
    found = open_pairs(path, ReadOptions(skip_bad=True))
    assert [row.a for row in found] == ["sun", "snow"]
    assert (len(found), found.skipped) == (2, 1)
    assert "line 3" in found.first_skipped[0]


def test_nothing_to_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pairs"):
        open_pairs(write(tmp_path / "x.csv", "a,b\n"))
    with pytest.raises(InputError, match="no pairs; 1 row was left out, the first: .*line 2"):
        open_pairs(write(tmp_path / "y.csv", "a,b\ncat,\n"), ReadOptions(skip_bad=True))
    with pytest.raises(InputError, match=r"expected a \(sentence1[\s\S]*--column a=NAME"):
        open_pairs(write(tmp_path / "z.csv", "left,right\ncat,dog\n"))


def test_a_text_that_no_model_takes_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "a\tb\ncat\tdog\ncat\t" + "x" * (16 * 2**20 + 1) + "\n")
    with pytest.raises(TextError, match="x.tsv line 3"):
        open_pairs(path)
