"""Files whose rows do not have the shape of their layout."""

from __future__ import annotations

import pytest
from tests.data.test_read import _file

from munjang.data.read import ReadOptions, read_scored_pairs
from munjang.errors import InputError


def test_a_line_with_too_few_columns_where_their_number_may_vary_is_named_or_skipped(tmp_path):
    rows = ["news\tf\t2012\t1\t2.5\ta\tb", "news\tf\t2012\t1\t3.0\tc", "forum\tf\t2014\t2\t5\tx\ty\tlicence\tlink"]
    path = _file(tmp_path, "sts-dev.csv", "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"sts-dev.csv line 2: 6 columns, expected 7 to 9"):
        read_scored_pairs(path)
    found = read_scored_pairs(path, ReadOptions(skip_bad=True))
    assert [pair.a for pair in found.rows] == ["a", "x"]
    assert found.skipped == ("sts-dev.csv line 2: 6 columns, expected 7 to 9",)


def test_an_empty_json_list_is_refused(tmp_path):
    with pytest.raises(InputError, match="a.json: empty, expected rows"):
        read_scored_pairs(_file(tmp_path, "a.json", "[]"))


def test_a_first_row_that_is_broken_is_named_and_not_taken_for_another_layout(tmp_path):
    path = _file(tmp_path, "a.csv", "sentence1,sentence2,label\nbroken\n비가 온다,눈이 온다,2.5\n")
    with pytest.raises(InputError, match="a.csv line 2: 1 columns, expected 3"):
        read_scored_pairs(path)


def test_a_broken_first_row_does_not_hide_the_layout_of_the_rows_after_it(tmp_path):
    path = _file(tmp_path, "klue.csv", "sentence1,sentence2,label\nbroken,row\n비가 온다,비가 내린다,4.2\n")
    found = read_scored_pairs(path, ReadOptions(skip_bad=True))
    assert (found.layout, found.scale, [pair.b for pair in found.rows]) == ("klue-sts", (0.0, 5.0), ["비가 내린다"])
    assert [line.splitlines()[0] for line in found.skipped] == ["klue.csv line 2: 2 columns, expected 3"]


def test_a_broken_first_line_of_json_is_named_or_skipped(tmp_path):
    good = '{"sentence1": "비가 온다", "sentence2": "비가 내린다", "score": 4}'
    path = _file(tmp_path, "a.jsonl", f'{{"sentence1": \n{good}\n')
    with pytest.raises(InputError, match=r"a\.jsonl line 1: "):
        read_scored_pairs(path)
    found = read_scored_pairs(path, ReadOptions(skip_bad=True, scale=(0, 5)))
    assert ([pair.a for pair in found.rows], len(found.skipped)) == (["비가 온다"], 1)
    with pytest.raises(InputError, match=r"b\.jsonl line 1: "):
        read_scored_pairs(_file(tmp_path, "b.jsonl", "{broken\n"), ReadOptions(skip_bad=True))


def test_a_file_in_utf_16_is_named_as_such(tmp_path):
    (tmp_path / "a.tsv").write_bytes("sentence1\tsentence2\tscore\n비\t눈\t1\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"a\.tsv: starts like UTF-16, expected UTF-8"):
        read_scored_pairs(tmp_path / "a.tsv")
