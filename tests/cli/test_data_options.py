"""How a data file is found, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.data_files import NOUNS, write_beir, write_sts

Call = Callable[..., Any]


def test_without_resamples_retrieval_shows_no_intervals(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    found = munjang("evaluate", "retrieval", write_beir(tmp_path / "beir"), "--model", tiny_bert_folder, "--resamples", 0)
    assert found.code == 0, found.err
    assert "ndcg" in found.out
    assert "95 %" not in found.out


def test_what_is_odd_about_a_file_is_said(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "sts.tsv"
    rows = [f"the {noun} {number}\tthe {noun} was\t{number / 24}" for number, noun in enumerate([*NOUNS, *NOUNS[:3]])] * 2
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    told = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, "--resamples", 0, "--scale", 0, 1)
    assert told.code == 0, told.err
    assert "no score is above 0.5 though the scale is 0 to 1: is the scale right?" in told.err


def test_a_folder_gives_the_file_of_its_split_or_a_list(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    write_sts(tmp_path / "sts-test.tsv")
    write_sts(tmp_path / "sts-dev.tsv")
    call = ("evaluate", "sts", tmp_path, "--model", tiny_bert_folder, "--resamples", 0, "--json")
    assert munjang(*call).json["file"] == "sts-test.tsv"
    write_sts(tmp_path / "more-test.tsv")
    refused = munjang(*call)
    assert refused.code == 3
    assert "2 data files named after 'test', expected one\n  there is 'more-test.tsv', 'sts-test.tsv'; name the file itself" in refused.err
