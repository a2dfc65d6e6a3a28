"""`munjang rerank`: best answers first, refusals that name the right command, a budget that is kept."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import write_cross_encoder

Munjang = Callable[..., Any]


@pytest.fixture(scope="session")
def cross_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross")
    write_cross_encoder(folder, 1)
    return folder


def test_the_best_text_comes_first(munjang: Munjang, texts_file: Path, cross_folder: Path) -> None:
    from munjang import CrossEncoder

    found = munjang("rerank", "the sun", texts_file, "--model", cross_folder, "--json")
    assert found.code == 0
    texts = texts_file.read_text(encoding="utf-8").splitlines()
    scores = CrossEncoder.load(cross_folder).predict([("the sun", text) for text in texts])
    expected = [texts[number] for number in sorted(range(len(texts)), key=lambda n: -scores[n])]
    assert [row["text"] for row in found.json] == expected


def test_a_table_and_a_file(munjang: Munjang, texts_file: Path, cross_folder: Path, tmp_path: Path) -> None:
    assert "비가 많이 온다" in munjang("rerank", "the sun", texts_file, "-m", cross_folder).out
    target = tmp_path / "ranked.jsonl"
    assert munjang("rerank", "the sun", texts_file, "-m", cross_folder, "-k", "2", "-o", target).code == 0
    assert [json.loads(line)["rank"] for line in target.read_text(encoding="utf-8").splitlines()] == [1, 2]


def test_a_budget_is_said(munjang: Munjang, tmp_path: Path, cross_folder: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"the rain {number}\n" for number in range(100)))
    found = munjang("rerank", "the sun", many, "-m", cross_folder, "--budget", "0", "-k", "100", "--json")
    assert "of 100 texts" in found.err
    assert sum(row["score"] is None for row in found.json) > 0


def test_a_search_says_how_far_its_reranker_got(munjang: Munjang, tmp_path: Path, cross_folder: Path, tiny_bert_folder: Path) -> None:
    texts = tmp_path / "many.txt"
    texts.write_text("".join(f"the rain {number}\n" for number in range(40)))
    library = tmp_path / "rain.db"
    assert munjang("add", library, texts, "--model", tiny_bert_folder).code == 0
    asked = ("search", library, "the sun", "--model", tiny_bert_folder, "--reranker", cross_folder, "-k", "40", "--json")
    whole = munjang(*asked)
    assert all(hit["reranked"] for hit in whole.json)
    assert "budget" not in whole.err
    spent = munjang(*asked, "--budget", "0")
    assert "the budget of 0 s was up after re-ranking 0 of 40 documents" in spent.err
    assert not any(hit["reranked"] for hit in spent.json)
    plain = munjang("search", library, "the sun", "--model", tiny_bert_folder, "-k", "40", "--json").json
    assert [hit["id"] for hit in spent.json] == [hit["id"] for hit in plain]


def test_a_budget_without_a_reranker_is_refused(munjang: Munjang, tmp_path: Path) -> None:
    found = munjang("search", tmp_path / "rain.db", "the sun", "--budget", "1")
    assert found.code == 2
    assert "name one with --reranker" in found.err


def test_pairs_that_are_cut_are_counted_without_naming_python(munjang: Munjang, tmp_path: Path, cross_folder: Path) -> None:
    data = tmp_path / "sts.tsv"
    data.write_text("sentence1\tsentence2\tscore\nthe rain\t" + "rain " * 100 + "\t0.9\ncat\tdog\t0.1\nsun\tmoon\t0.4\n", encoding="utf-8")
    found = munjang("evaluate", "sts", data, "--model", cross_folder)
    assert "1 of 3 pairs is longer than 48 tokens; not read to the end" in found.err
    assert "predict_with_report" not in found.err


def test_a_sentence_encoder_is_refused(munjang: Munjang, texts_file: Path, tiny_bert_folder: Path) -> None:
    found = munjang("rerank", "the sun", texts_file, "-m", tiny_bert_folder)
    assert found.code == 3
    assert "munjang encode" in found.err


def test_a_cross_encoder_is_refused_by_encode(munjang: Munjang, texts_file: Path, cross_folder: Path) -> None:
    found = munjang("encode", texts_file, "-m", cross_folder)
    assert found.code == 3
    assert "munjang rerank" in found.err


def test_the_first_ranking_keeps_the_rest_of_the_say(munjang: Munjang, cross_folder: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the sun\nrain in winter\na cat and a dog\nsnow\n", encoding="utf-8")
    library = tmp_path / "texts.db"
    assert munjang("add", library, tmp_path / "texts.txt", "--model", tiny_bert_folder).code == 0
    asked = ("search", library, "the sun", "--model", tiny_bert_folder, "--json")
    first = munjang(*asked).json
    nearly = munjang(*asked, "--reranker", cross_folder, "--rerank-share", "0.01").json
    assert nearly[0]["id"] == first[0]["id"]
    assert all(hit["reranked"] and 0 <= hit["score"] <= 1 for hit in nearly)
    lone = munjang(*asked, "--rerank-share", "0.2")
    assert lone.code == 2
    assert "add --rerank" in lone.err


def test_the_files_suffix_is_obeyed_and_an_empty_file_is_refused(
    munjang: Munjang, texts_file: Path, cross_folder: Path, tmp_path: Path
) -> None:
    asked = ("rerank", "the sun", texts_file, "-m", cross_folder)
    assert munjang(*asked, "-o", tmp_path / "r.csv").code == 0
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["text"] for row in rows] == [row["text"] for row in munjang(*asked, "--json").json]
    assert list(rows[0]) == ["rank", "id", "score", "text"]
    assert munjang(*asked, "-o", tmp_path / "r.xlsx").code == 2
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    empty = munjang("rerank", "the sun", tmp_path / "empty.txt", "-m", cross_folder, "--json")
    assert (empty.code, empty.out) == (3, "")
    assert "holds no text" in empty.err
