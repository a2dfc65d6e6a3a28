from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TEXTS = ["the rain is in the river", "비가 많이 온다", "cat", "river"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    left, right = tmp_path / "left.txt", tmp_path / "right.csv"
    left.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    right.write_text("id,name\n" + "".join(f"n{i},{text}\n" for i, text in enumerate(reversed(TEXTS[1:]))), encoding="utf-8")
    return left, right


@pytest.fixture
def call(munjang: Callable[..., Any], files: tuple[Path, Path], tiny_bert_folder: Path) -> Callable[..., Any]:
    return lambda *more: munjang("match", *files, "--text-column", "text", "--text-column", "name", "--model", tiny_bert_folder, *more)


def test_each_text_finds_its_copy(call: Callable[..., Any]) -> None:
    found = call("--json").json
    assert len(found["matches"]) == 4
    by_row = {pair["left"]["row"]: pair for pair in found["matches"]}
    assert [by_row[row]["right"]["text"] for row in (2, 3, 4)] == TEXTS[1:]
    assert by_row[2]["score"] == pytest.approx(1, abs=1e-5)
    assert by_row[2]["right"]["id"] == "n2"


def test_one_to_one_leaves_one_alone(call: Callable[..., Any]) -> None:
    found = call("--one-to-one", "--threshold", "0.999", "--json").json
    assert [pair["left"]["row"] for pair in found["matches"]] == [2, 3, 4]
    assert [row["row"] for row in found["left_alone"]] == [1]
    assert found["right_alone"] == []
    assert found["exact"]


def test_margins_are_above_one_for_copies(call: Callable[..., Any]) -> None:
    assert all(pair["score"] > 1 for pair in call("--margin", "--one-to-one", "--json").json["matches"])


def test_a_table_and_a_file(call: Callable[..., Any], tmp_path: Path) -> None:
    assert "alone on the right" in call().out
    assert call("-o", tmp_path / "pairs.jsonl").code == 0
    first = json.loads((tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert first["text_left"] == first["text_right"] == TEXTS[1]


def test_wrong_calls_are_refused(munjang: Callable[..., Any], call: Callable[..., Any], tmp_path: Path) -> None:
    assert munjang("match", "-", "-").code == 2
    assert call("-o", tmp_path / "pairs.png").code == 2
    assert munjang("match", tmp_path / "none.txt", tmp_path / "none.txt").code == 3


def test_too_many_texts_for_the_best_assignment_are_said(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.analyze.match.ASSIGNED_CELLS", 1)
    outcome = call("--one-to-one", "--json")
    assert not outcome.json["exact"]
    assert "too many texts for the optimal assignment; pairs were taken greedily, best first" in outcome.err


def test_more_than_two_columns_are_refused(call: Callable[..., Any]) -> None:
    outcome = call("--text-column", "other")
    assert outcome.code == 2
    assert "--text-column: found 3 names, expected one or two" in outcome.err


def test_numbers_keep_other_products_apart(munjang: Callable[..., Any], tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    ours.write_text("아이폰 13\n쌀 1kg\n", encoding="utf-8")
    theirs.write_text("아이폰 13 프로\niPhone 13 smartphone\n쌀 500g\nrice 1000 g\n", encoding="utf-8")
    without = munjang("match", ours, theirs, "--json").json["matches"]
    found = munjang("match", ours, theirs, "--numbers", "--json").json["matches"]
    assert [pair["right"]["text"] for pair in without] == ["아이폰 13 프로", "쌀 500g"]
    assert [pair["right"]["text"] for pair in found] == ["iPhone 13 smartphone", "rice 1000 g"]


def test_no_matches_are_said_in_words(munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("dog\n", encoding="utf-8")
    outcome = munjang("match", texts_file, other, "--threshold", "0.999", "--model", tiny_bert_folder)
    assert outcome.out.splitlines()[0] == "no matches above 0.999"
