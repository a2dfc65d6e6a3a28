"""`munjang morphs`: a table, JSON, a file in and a file out."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.text import morphology
from munjang.text.morphology import analyse

RAIN = "서울에 비가 내렸다. 우산을 폈다."


@pytest.fixture
def call(munjang: Callable[..., Any]) -> Callable[..., Any]:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    return lambda *more, **rest: munjang("morphs", "--split-names", *more, **rest)


def test_json_is_what_python_returns(call: Callable[..., Any]) -> None:
    [expected] = analyse([RAIN], keep_names=False)
    found = call(RAIN, "--json").json
    assert found == {
        "text": RAIN,
        "sentences": [{**asdict(each), "morphs": [asdict(morph) for morph in each.morphs]} for each in expected.sentences],
    }
    assert call("-", "--json", stdin=RAIN).json == found


def test_the_table_shows_forms_tags_lemmas_and_places(call: Callable[..., Any]) -> None:
    lines = [line.split() for line in call(RAIN).out.splitlines() if "내리" in line]
    assert lines == [["1", "내리", "VV", "내리다", "7–9"]]
    assert call(RAIN, "--sentences").out.split()[-4:] == ["2", "우산을", "폈다.", "12–19"]
    nouns = call(RAIN, "--nouns").out
    assert "우산" in nouns
    assert "내리" not in nouns
    assert call("ㅋ!", "--nouns").out == "no morphemes\n"


def test_a_file_is_read_and_written_row_by_row(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_text(f"id,text\na,{RAIN}\nb,눈이 온다\n", encoding="utf-8")
    outcome = call("--file", tmp_path / "news.csv", "-o", tmp_path / "morphs.csv")
    assert outcome.code == 0, outcome.err
    with (tmp_path / "morphs.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert rows[0] == {"row": "a", "sentence": "1", "form": "서울", "tag": "NNP", "lemma": "서울", "start": "0", "end": "2"}
    assert [row["form"] for row in rows if row["row"] == "b"] == ["눈", "이", "오", "ᆫ다"]
    found = call("--file", tmp_path / "news.csv", "--json").json
    assert [(row["id"], len(row["sentences"])) for row in found] == [("a", 2), ("b", 1)]
    assert "a" in call("--file", tmp_path / "news.csv", "--sentences").out


def test_a_text_and_a_file_at_once_or_neither_are_usage_errors(call: Callable[..., Any], tmp_path: Path) -> None:
    assert call().code == call("비", "--file", "news.csv").code == 2
    assert call("비", "-o", "morphs.xlsx").code == 2
    assert call("--file", tmp_path / "none.csv").code == 3


def test_without_kiwi_one_line_names_the_extra(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(morphology, "kiwi_is_installed", lambda: False)
    outcome = munjang("morphs", RAIN)
    assert (outcome.code, outcome.out) == (2, "")
    assert "pip install 'munjang[korean]'" in outcome.err


@pytest.mark.slow
def test_every_line_and_block_of_the_page_works(munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    page = Path(__file__).parents[2] / "docs/morphs.md"
    monkeypatch.chdir(tmp_path)
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) == 5
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})
