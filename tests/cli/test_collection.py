"""`munjang pairs` and `munjang match` over libraries: documents by their stored vectors, with their ids."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TEXTS = {"a": "the rain is in the river", "b": "비가 많이 온다", "c": "cat", "d": "the rain is in the river"}


def table(path: Path, texts: dict[str, str]) -> Path:
    path.write_text("id,text,year\n" + "".join(f"{id},{text},2020\n" for id, text in texts.items()), encoding="utf-8")
    return path


@pytest.fixture
def library(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "news.db"
    assert munjang("add", path, table(tmp_path / "news.csv", TEXTS), "--model", tiny_bert_folder).code == 0
    return path


def test_pairs_of_a_library_are_those_of_its_file(
    munjang: Callable[..., Any], library: Path, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    of_file = munjang("pairs", tmp_path / "news.csv", "--threshold", "-1", "--model", tiny_bert_folder, "--json").json
    of_library = munjang("pairs", library, "--threshold", "-1", "--json").json
    assert [(pair["a"]["id"], pair["b"]["id"]) for pair in of_library["pairs"]] == [
        (pair["a"]["id"], pair["b"]["id"]) for pair in of_file["pairs"]
    ]
    assert [pair["score"] for pair in of_library["pairs"]] == pytest.approx([pair["score"] for pair in of_file["pairs"]], abs=1e-5)
    assert [[row["id"] for row in group] for group in of_library["same"]] == [["a", "d"]]


def test_a_library_is_not_encoded_again(munjang: Callable[..., Any], library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.models.prompted_encoder.PromptedEncoder.encode", lambda *_: pytest.fail("something was encoded"))
    assert munjang("pairs", library, "--threshold", "-1").code == 0
    found = munjang("match", library, library, "--one-to-one", "--json").json
    assert [pair["left"]["id"] for pair in found["matches"]] == ["a", "b", "c", "d"]


def test_a_deduped_library_is_written_with_ids_and_metadata(munjang: Callable[..., Any], library: Path, tmp_path: Path) -> None:
    assert munjang("pairs", library, "--dedupe", "--threshold", "1.5", "-o", tmp_path / "clean.csv").code == 0
    with (tmp_path / "clean.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["year"] == "2020"


def test_a_file_is_matched_with_a_library(munjang: Callable[..., Any], library: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours.txt"
    ours.write_text("cat\n비가 많이 온다\n", encoding="utf-8")
    found = munjang("match", ours, library, "--model", tiny_bert_folder, "--json").json
    assert [pair["right"]["id"] for pair in found["matches"]] == ["c", "b"]
    assert found["matches"][0]["score"] == pytest.approx(1, abs=1e-5)


def test_libraries_of_two_models_are_refused_with_both(munjang: Callable[..., Any], library: Path, minilm: str, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert munjang("add", other, tmp_path / "news.csv", "--model", minilm).code == 0
    outcome = munjang("match", library, other)
    assert outcome.code == 2
    assert "two models" in outcome.err
    assert munjang("match", tmp_path / "news.csv", library, "--model", minilm).code == 2
    assert munjang("match", tmp_path / "news.csv", other).code == 0  # the library says its model


def test_a_long_document_is_the_mean_of_its_passages() -> None:
    from munjang.library.matrix import document_vector
    from munjang.library.store import Document, Entry, Passage

    entry = Entry(Document("a", "x" * 40, {}, ""), (Passage(0, 30, ()), Passage(30, 40, ())), np.array([[2, 0], [0, 3]], dtype=np.float32))
    lengths = [passage.stop - passage.start for passage in entry.passages]
    assert document_vector(entry.vectors_PD, lengths) == pytest.approx(np.array([0.75, 0.25]) / np.hypot(0.75, 0.25))


def test_a_threshold_is_found_by_labelled_pairs(munjang: Callable[..., Any], library: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.csv"
    words = ["rain", "river", "cat", "비가", "온다", "많이"]
    same = [f"{a} {b},{a} {b},1\n" for a in words for b in words[:2]]
    other = [f"{a},{b} {b},0\n" for a in words for b in words if a != b]
    labelled.write_text("sentence1,sentence2,label\n" + "".join(same + other), encoding="utf-8")
    ours = tmp_path / "ours.txt"
    ours.write_text("cat\nriver\n", encoding="utf-8")
    outcome = munjang("match", ours, library, "--calibrate", labelled, "--model", tiny_bert_folder, "--json")
    assert outcome.code == 0, outcome.err
    assert "labelled pairs; F1" in outcome.err
    assert [pair["right"]["id"] for pair in outcome.json["matches"]] == ["c"]
    assert munjang("match", ours, library, "--calibrate", labelled, "--threshold", "0.5").code == 2
    assert munjang("match", ours, library, "--calibrate", labelled, "--margin").code == 2
    assert munjang("match", ours, library, "--calibrate", tmp_path / "none.csv", "--model", tiny_bert_folder).code == 3


def test_an_empty_library_is_refused(munjang: Callable[..., Any], library: Path) -> None:
    assert munjang("remove", library, *TEXTS).code == 0
    outcome = munjang("pairs", library)
    assert outcome.code == 3
    assert "munjang add" in outcome.err


def test_addresses_are_libraries_and_texts_need_a_model(tmp_path: Path) -> None:
    from munjang.cli.collection import is_library, read_collection, vectors_of
    from munjang.cli.row_files import Columns
    from munjang.errors import UsageError

    assert is_library("postgresql://localhost/news")
    assert is_library("postgres://localhost/news")
    texts = tmp_path / "texts.txt"
    texts.write_text("the rain\n", encoding="utf-8")
    found = read_collection(str(texts), Columns())
    with pytest.raises(UsageError, match=r"texts\.txt: has no vectors yet, expected a model that makes them"):
        vectors_of([found], None)
