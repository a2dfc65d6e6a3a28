from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyze.topics.conftest import made
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

ROOT = Path(__file__).parents[2]
COLLECTION = made(15)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    with (tmp_path / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "text", "year", "kind"])
        rows.writerows(
            [f"d{row}", text, 2000 + row % 5, kind] for row, (text, kind) in enumerate(zip(COLLECTION.texts, COLLECTION.truth, strict=True))
        )
    np.save(tmp_path / "vectors.npy", COLLECTION.vectors)
    return tmp_path


def fitted(munjang: Callable[..., Any], files: Path, *more: str) -> Any:
    outcome = munjang("topics", files / "texts.csv", "--vectors", files / "vectors.npy", "-o", files / "model", "--json", *more)
    assert outcome.code == 0, outcome.err
    return outcome.json


def test_saved_topics_assign_the_texts_as_they_were_fitted(munjang: Callable[..., Any], files: Path) -> None:
    facts = fitted(munjang, files)
    assert len(facts["topics"]) == 4
    assert facts["outlier_share"] <= 0.1
    answer = munjang("topics", "assign", files / "model", files / "texts.csv", "--vectors", files / "vectors.npy", "--json").json
    sizes = {topic["id"]: sum(row["topic"] == topic["id"] for row in answer) for topic in facts["topics"]}
    assert sizes == {topic["id"]: topic["size"] for topic in facts["topics"]}
    assert answer[0]["id"] == "d0"


def test_time_and_class_stand_in_json_and_report(munjang: Callable[..., Any], files: Path) -> None:
    page = files / "page.html"
    facts = fitted(munjang, files, "--time-column", "year", "--class-column", "kind", "--html", str(page))
    assert [each["name"] for each in facts["over_time"]] == ["2000", "2001", "2002", "2003", "2004"]
    assert [each["name"] for each in facts["per_class"]] == ["0", "1", "2", "3"]
    written = page.read_text(encoding="utf-8")
    assert all(f"<h2>{heading}</h2>" in written for heading in ("Map", "Topics", "Hierarchy", "Over time", "Per class"))


def test_merge_split_outliers_and_rename_change_the_folder(munjang: Callable[..., Any], files: Path) -> None:
    fitted(munjang, files)
    assert len(munjang("topics", "merge", files / "model", "0", "1", "--json").json["topics"]) == 3
    assert len(munjang("topics", "split", files / "model", "0", "--json").json["topics"]) == 4
    assert munjang("topics", "outliers", files / "model", "0", "--json").json["outliers"] == 0
    assert munjang("topics", "rename", files / "model", "0", "first", "--json").json["topics"][0]["id"] >= 0
    shown = munjang("topics", "show", files / "model", "0", "--json").json
    assert shown["name"] == "first"


def test_what_is_wrong_is_said(munjang: Callable[..., Any], files: Path) -> None:
    fitted(munjang, files)
    for arguments, code, said in (
        (("topics", "show", files), 3, "topics.json"),
        (("topics", "show", files / "model", "99"), 2, "there is none"),
        (("topics", "merge", files / "model"), 2, "--to"),
        (("topics", files / "texts.csv", "--time-column", "jear", "--vectors", files / "vectors.npy"), 3, "year"),
        (("topics", "find", files / "model", "rain"), 2, "--model"),
        (("topics", files / "texts.csv", "--html", "page.pdf"), 2, ".html"),
    ):
        outcome = munjang(*arguments)
        assert outcome.code == code, outcome.err
        assert said in outcome.err


def test_every_line_and_block_of_the_page_works(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/topics.md"
    write_shown_files(page, tmp_path)
    text = page.read_text(encoding="utf-8")
    (tmp_path / "news.csv").write_text(re.search(r"```csv\n(date.*?)```", text, flags=re.DOTALL).group(1), encoding="utf-8")
    assert run_lines(page, munjang) >= 15
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, {})
    assert "True" in capsys.readouterr().out


@pytest.mark.parametrize("rows", [np.zeros(6), np.array([["a", "b"]])], ids=["one row", "words"])
def test_vectors_that_are_no_table_of_numbers_are_refused(munjang: Callable[..., Any], files: Path, rows: np.ndarray) -> None:
    np.save(files / "wrong.npy", rows)
    refused = munjang("topics", files / "texts.csv", "--vectors", files / "wrong.npy")
    assert refused.code == 3
    assert f"wrong.npy: holds {rows.dtype} of shape {rows.shape}, expected a table of numbers, one row for each text" in refused.err


def test_topics_are_found_by_the_model_that_made_them_and_no_other(
    munjang: Callable[..., Any], files: Path, tiny_bert_folder: Path, tiny_folder: Callable[..., Path]
) -> None:
    made_with = munjang("topics", files / "texts.csv", "-o", files / "model", "--model", tiny_bert_folder, "--json")
    assert made_with.code == 0, made_with.err
    found = munjang("topics", "find", files / "model", "rain", "-k", "1", "--model", tiny_bert_folder, "--json")
    assert found.code == 0, found.err
    [best] = found.json
    assert best.keys() == {"id", "name", "score", "size"}
    assert best["id"] in [topic["id"] for topic in made_with.json["topics"]]
    refused = munjang("topics", "find", files / "model", "rain", "--model", tiny_folder("bert", pooling=("max",)))
    assert refused.code == 2
    assert "the topics were found with another model than" in refused.err
    assert "  name that model with --model" in refused.err


def test_assigning_keeps_the_columns_of_the_same_name(munjang: Callable[..., Any], files: Path) -> None:
    fitted(munjang, files)
    lines = (files / "texts.csv").read_text(encoding="utf-8").replace("id,text,year,kind", "id,text,topic,score", 1)
    (files / "own.csv").write_text(lines, encoding="utf-8")
    vectors = ("--vectors", files / "vectors.npy")
    assert munjang("topics", "assign", files / "model", files / "own.csv", *vectors, "-o", files / "out.csv").code == 0
    with (files / "out.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == ["id", "text", "topic", "score", "topic_2", "name", "score_2"]
    assert [row["topic"] for row in rows[:6]] == ["2000", "2001", "2002", "2003", "2004", "2000"]


def test_an_empty_question_to_topics_is_refused(munjang: Callable[..., Any], files: Path, tiny_bert_folder: Path) -> None:
    fitted(munjang, files)
    outcome = munjang("topics", "find", files / "model", " ", "--model", tiny_bert_folder)
    assert outcome.code == 2
    assert "the query is empty" in outcome.err


def test_topics_of_a_folder_of_bulk(munjang, tmp_path, tiny_bert_folder):
    rows = [
        {"id": f"r{place}", "text": f"{word} {other} {place % 40}"}
        for place, (word, other) in enumerate([("rain", "river"), ("cat", "dog")] * 60)
    ]
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    bulk = ("bulk", tmp_path / "news.jsonl", "--model", tiny_bert_folder, "--workers", "1", "--shard-rows", "50")
    assert munjang(*bulk, "--keep-text", "-o", tmp_path / "out").code == 0
    found = munjang("topics", tmp_path / "out", "-o", tmp_path / "model", "--topics", "2", "--sample", "100", "--json").json
    assert found["documents"] == 120
    assert sum(topic["size"] for topic in found["topics"]) + found["outliers"] == 120
    assert all(rows[each["row"] - 1]["text"] == each["text"] for topic in found["topics"] for each in topic["documents"])
    done = munjang("topics", "assign", tmp_path / "model", tmp_path / "out", "-o", tmp_path / "assigned.jsonl", "--json").json
    lines = [json.loads(line) for line in (tmp_path / "assigned.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    assert {topic["topic"]: topic["documents"] for topic in done["topics"]} == {topic["id"]: topic["size"] for topic in found["topics"]}
    assert "120" in munjang("topics", "assign", tmp_path / "model", tmp_path / "out").out
    assert munjang("topics", tmp_path / "out", "--html", tmp_path / "page.html").code == 0
    assert munjang("topics", tmp_path / "out", "--time-column", "date").code == 2
    assert munjang(*bulk, "-o", tmp_path / "bare").code == 0
    assert "--keep-text" in munjang("topics", tmp_path / "bare").err
