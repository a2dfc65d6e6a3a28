from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import write_beir, write_pairs, write_sts

Call = Callable[..., Any]


@pytest.fixture
def two(tiny_bert_folder: Path, tiny_folder: Callable[..., Path]) -> tuple[Path, Path]:
    return tiny_bert_folder, tiny_folder("bert", pooling=("max",))


def test_a_model_does_not_differ_from_itself(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv")
    found = munjang("compare", tiny_bert_folder, tiny_bert_folder, file, "--json")
    assert found.code == 0, found.err
    assert (found.json["metric"], found.json["difference"], found.json["p"]) == ("spearman_cosine", 0.0, 1.0)
    assert "no difference beyond chance" in munjang("compare", tiny_bert_folder, tiny_bert_folder, file).out


def test_swapping_the_models_turns_the_sign(munjang: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = two
    file = write_sts(tmp_path / "sts.tsv")
    there = munjang("compare", a, b, file, "--metric", "pearson", "--json").json
    back = munjang("compare", b, a, file, "--metric", "pearson", "--json").json
    assert there["difference"] == pytest.approx(-back["difference"])
    assert there["p"] == pytest.approx(back["p"])
    assert 0 < there["p"] <= 1
    assert there["ci95"][0] <= there["difference"] <= there["ci95"][1]
    assert {there["winner"], back["winner"]} in ({"neither"}, {"a", "b"})


def test_the_kind_of_file_chooses_the_measure(munjang: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    pairs, folder = write_pairs(tmp_path / "pairs.tsv"), write_beir(tmp_path / "beir")
    assert munjang("compare", *two, pairs, "--resamples", 50, "--json").json["metric"] == "cosine_ap"
    found = munjang("compare", *two, folder, "--resamples", 50, "--json")
    assert (found.json["metric"], found.json["a"], found.json["n"]) == ("ndcg@10", 1.0, 4)
    assert munjang("compare", *two, folder, "--metric", "recall@1", "--resamples", 50, "--json").json["b"] == 1.0


def test_what_cannot_be_compared_is_refused(munjang: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("text,label\nthe rain,weather\n", encoding="utf-8")
    assert "expected scored pairs" in munjang("compare", *two, texts).err
    sts = write_sts(tmp_path / "sts.tsv")
    wrong = munjang("compare", *two, sts, "--metric", "ndcg@10")
    assert (wrong.code, "expected spearman or pearson" in wrong.err) == (2, True)
    assert munjang("compare", *two, tmp_path / "nothing.tsv").code == 3
    assert munjang("compare", *two, sts, "--resamples", 0).code == 2


def test_a_file_without_rows_is_refused(munjang: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    empty = tmp_path / "sts.tsv"
    empty.write_text("sentence1\tsentence2\tscore\n", encoding="utf-8")
    refused = munjang("compare", *two, empty)
    assert refused.code == 3
    assert "sts.tsv" in refused.err
    assert "row" in refused.err
