"""What every command that reads texts understands: an encoding, quotes that are no quotes, and a library in the place of a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import write_cross_encoder

from munjang.cli.row_files import TextRow, beside

Munjang = Callable[..., Any]
TEXTS = ("비가 많이 온다", "눈이 올까요?", "the rain is in the river", "a cat and a dog")
STRAY = 'id,text\n1,"the rain\n2,a cat\n3,snow is in winter\n4,the sun\n'

COMMANDS: dict[str, tuple[str, ...]] = {
    "encode": ("encode", "FILE", "--json"),
    "similar": ("similar", "--matrix", "FILE", "--json"),
    "pairs": ("pairs", "FILE", "--json"),
    "match": ("match", "FILE", "FILE", "--json"),
    "cluster": ("cluster", "FILE", "--method", "communities", "--min-size", "1", "--json"),
    "keywords": ("keywords", "FILE", "--analyser", "plain", "--json"),
    "map": ("map", "FILE", "-o", "map.html", "--colour", "text", "--layout", "pca", "--json"),
    "rerank": ("rerank", "the sun", "FILE", "--json"),
    "add": ("add", "texts.db", "FILE", "--json"),
    "topics": ("topics", "FILE", "--method", "kmeans", "--topics", "2", "--min-size", "1", "--json"),
}


@pytest.fixture
def call(munjang: Munjang, tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Munjang:
    monkeypatch.chdir(tmp_path)
    write_cross_encoder(tmp_path / "cross", 1)

    def run(command: str, file: str, *more: str) -> Any:
        if command == "topics":
            pytest.importorskip("sklearn", reason="scikit-learn is not installed")
        model = tmp_path / "cross" if command == "rerank" else tiny_bert_folder
        return munjang(*(file if word == "FILE" else word for word in COMMANDS[command]), "--model", model, *more)

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_another_encoding_is_read_when_it_is_named(command: str, call: Munjang, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_bytes("".join(["id,text\n", *(f"{n},{text}\n" for n, text in enumerate(TEXTS))]).encode("cp949"))
    refused = call(command, "texts.csv")
    assert refused.code == 3
    assert "name the file's encoding, such as cp949" in refused.err
    read = call(command, "texts.csv", "--encoding", "cp949")
    assert read.code == 0, read.err
    assert "없는" in call(command, "texts.csv", "--encoding", "없는").err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stray_quote_is_read_without_quoting(command: str, call: Munjang, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(STRAY, encoding="utf-8")
    assert call(command, "texts.csv").code == 3
    read = call(command, "texts.csv", "--no-quoting")
    assert read.code == 0, read.err


@pytest.mark.parametrize("command", ["cluster", "keywords", "map", "rerank", "topics"])
def test_a_library_is_read_as_a_file_is(
    command: str, call: Munjang, munjang: Munjang, tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("munjang.library.open_store.choose_analyser", lambda *, noted=False: "bigrams")
    lines = [json.dumps({"id": f"d{n}", "text": text}, ensure_ascii=False) + "\n" for n, text in enumerate(TEXTS)]
    (tmp_path / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
    assert munjang("add", "texts.db", "texts.jsonl", "--model", tiny_bert_folder).code == 0
    ours, theirs = call(command, "texts.db"), call(command, "texts.jsonl")
    assert ours.code == 0, ours.err
    assert ours.json == theirs.json if command != "keywords" else [row["text"] for row in ours.json] == list(TEXTS)


def test_names_that_rows_use_already_get_the_next_free_number() -> None:
    rows = [TextRow(1, None, "a", {"text": "a", "topic": 1, "topic_2": 2}), TextRow(2, None, "b", {"text": "b", "score": 3})]
    said = [{"topic": 7, "score": 0.5}, {"topic": 8, "score": 0.25}]
    assert beside(rows, said) == [
        {"text": "a", "topic": 1, "topic_2": 2, "topic_3": 7, "score_2": 0.5},
        {"text": "b", "score": 3, "topic_3": 8, "score_2": 0.25},
    ]


def test_clusters_leave_the_columns_of_the_same_name_alone(call: Munjang, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text,cluster,phrases\nthe rain,mine,too\na cat,yours,\n", encoding="utf-8")
    assert call("cluster", "texts.csv", "-o", "out.csv").code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["cluster"], row["phrases"]) for row in rows] == [("mine", "too"), ("yours", "")]
    assert all(row["cluster_2"].isdigit() for row in rows)
    assert "phrases_2" in rows[0]
