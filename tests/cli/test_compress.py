"""`munjang compress`: steps in order, figures before and after each, and the folder that is promised."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.doc_pages import run_lines, write_shown_files
from tests.conftest import WORDS

from munjang.models import registry
from munjang.models.sentence_encoder import SentenceEncoder

PAGE = Path(__file__).parents[2] / "docs/compress.md"
MANY = [f"{first} {second}" for first in WORDS[:10] for second in WORDS[10:18]]
DEV = "sentence1\tsentence2\tscore\n비가 온다\t눈이 온다\t3.0\nthe cat\tthe dog\t2.0\nrain\t비가 온다\t4.0\nbook\tcoffee\t0.5\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(MANY) + "\n", encoding="utf-8")
    (tmp_path / "dev.tsv").write_text(DEV, encoding="utf-8")
    return tmp_path


def test_every_step_is_measured_and_the_last_is_kept(munjang: Callable[..., Any], tiny_bert_folder: Path, files: Path) -> None:
    steps = ("--keep-layers", "1", "--prune", "--scripts", "ko", "--dimension", "16", "--half", "--int8")
    measured = ("--dev", files / "dev.tsv", "--scale", "0", "5", "--seconds", "0", "--json")
    outcome = munjang("compress", tiny_bert_folder, "-o", files / "small", "--texts", files / "texts.txt", *steps, *measured)
    assert outcome.code == 0, outcome.err
    figures = outcome.json["steps"]
    assert [one["step"] for one in figures] == ["before", "layers", "vocabulary", "dimension", "half", "int8"]
    assert [one["dimension"] for one in figures] == [32, 32, 32, 16, 16, 16]
    assert all(one["texts_per_second"] > 0 and one["dev"]["measure"] == "spearman_cosine" for one in figures)
    sizes = [one["bytes"] for one in figures[:3]]
    assert sizes == sorted(sizes, reverse=True)
    assert figures[4]["bytes"] < figures[3]["bytes"]
    model = SentenceEncoder.load(files / "small")
    assert (model.dimension, model.engine.layers) == (16, 1)
    assert sorted(path.name for path in files.iterdir()) == ["dev.tsv", "small", "texts.txt"]


def test_pruning_alone_keeps_vectors_and_prints_a_table(munjang: Callable[..., Any], tiny_bert_folder: Path, files: Path) -> None:
    outcome = munjang("compress", tiny_bert_folder, "-o", files / "small", "--texts", files / "texts.txt", "--prune", "--seconds", "0")
    assert outcome.code == 0, outcome.err
    assert "vocabulary" in outcome.out
    assert "80 of 80 texts unchanged" in outcome.out
    before, after = (SentenceEncoder.load(path).encode(MANY) for path in (tiny_bert_folder, files / "small"))
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_half_needs_no_texts(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    outcome = munjang("compress", tiny_bert_folder, "-o", tmp_path / "half", "--half", "--seconds", "0")
    assert outcome.code == 0, outcome.err
    assert SentenceEncoder.load(tmp_path / "half").dimension == 32


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "no step is asked for"),
        (("--prune",), "need --texts"),
        (("--keep-layers", "one"), "expected numbers with commas"),
        (("--keep-layers", "7"), "the model has 2 layers"),
        (("--prune", "--scripts", "klingon", "--texts", "texts.txt"), "is unknown; known are ko, en"),
    ],
    ids=["nothing", "no texts", "no numbers", "no such layer", "no such script"],
)
def test_a_wrong_call_says_what_was_expected_and_writes_nothing(
    options: tuple[str, ...],
    says: str,
    munjang: Callable[..., Any],
    tiny_bert_folder: Path,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    outcome = munjang("compress", tiny_bert_folder, "-o", "small", *options)
    assert outcome.code == 2
    assert says in outcome.err
    assert sorted(path.name for path in files.iterdir()) == ["dev.tsv", "texts.txt"]


def test_a_folder_that_holds_something_is_left_alone(munjang: Callable[..., Any], tiny_bert_folder: Path, files: Path) -> None:
    outcome = munjang("compress", tiny_bert_folder, "-o", files, "--half")
    assert outcome.code == 2
    assert "not empty" in outcome.err
    assert (files / "dev.tsv").read_text(encoding="utf-8") == DEV


@pytest.mark.parametrize(
    ("name", "rows", "measure"),
    [
        ("pairs.tsv", "sentence1\tsentence2\tlabel\nthe cat\tthe cat\t1\nrain\tbook\t0\n비가 온다\t비가 온다\t1\n", "cosine_ap"),
        ("triplets.tsv", "anchor\tpositive\tnegative\nthe cat\tthe cat\train\nbook\tbook\tsnow\n", "cosine_accuracy"),
    ],
)
def test_the_dev_file_may_be_of_another_kind(
    name: str, rows: str, measure: str, munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(rows, encoding="utf-8")
    outcome = munjang("compress", tiny_bert_folder, "-o", tmp_path / "h", "--half", "--dev", tmp_path / name, "--seconds", "0", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["steps"][0]["dev"] == {"measure": measure, "value": 1.0}


def test_every_line_of_the_page_runs(
    munjang: Callable[..., Any], tiny_folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PACKAGES", {})
    (tmp_path / "models").mkdir()
    (tmp_path / "models/large").symlink_to(tiny_folder("bert"), target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    assert run_lines(PAGE, munjang) >= 4
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0], PAGE.name, "exec"), {"__name__": "__page__"})
    assert SentenceEncoder.load("models/pruned").dimension == 32


def test_plain_pairs_are_measured_too_and_other_files_refused(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("en\tko\nthe cat\t고양이\nrain\t비가 온다\nbook\t책\n", encoding="utf-8")
    (tmp_path / "texts.csv").write_text("text,label\nthe rain,weather\n", encoding="utf-8")
    call = ("compress", tiny_bert_folder, "--half", "--seconds", "0", "--json")
    found = munjang(*call, "-o", tmp_path / "a", "--dev", tmp_path / "pairs.tsv")
    assert found.code == 0, found.err
    assert found.json["steps"][0]["dev"]["measure"] == "mean_accuracy"
    refused = munjang(*call, "-o", tmp_path / "b", "--dev", tmp_path / "texts.csv")
    assert refused.code == 3
    assert "expected scored pairs, same/different pairs, triplets or pairs to measure on" in refused.err
    assert not (tmp_path / "b").exists()


def test_an_empty_folder_is_filled_and_lost_layers_are_followed_by_advice(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    outcome = munjang("compress", tiny_bert_folder, "-o", tmp_path / "small", "--keep-layers", "0", "--seconds", "0")
    assert outcome.code == 0, outcome.err
    assert "retrain a model that lost layers: munjang distill --teacher BEFORE --student AFTER" in outcome.err
    assert SentenceEncoder.load(tmp_path / "small").engine.layers == 1
