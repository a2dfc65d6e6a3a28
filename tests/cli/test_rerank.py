"""`munjang rerank`: best answers first, refusals that name the right command, a budget that is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Munjang = Callable[..., Any]


@pytest.fixture(scope="session")
def cross_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers = pytest.importorskip("transformers", reason="the tiny cross-encoder is made with transformers")
    from tests.conftest import POSITIONS, Tiny, make_config, quiet, randomise, write_tokenizer

    folder = tmp_path_factory.mktemp("cross")
    size = write_tokenizer(folder, "bert", 48)
    with quiet():
        config = make_config(Tiny(positions=POSITIONS), size)
        config.num_labels = 1
        model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
        randomise(model)
        model.save_pretrained(folder)
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


def test_a_sentence_encoder_is_refused(munjang: Munjang, texts_file: Path, tiny_bert_folder: Path) -> None:
    found = munjang("rerank", "the sun", texts_file, "-m", tiny_bert_folder)
    assert found.code == 3
    assert "munjang encode" in found.err


def test_a_cross_encoder_is_refused_by_encode(munjang: Munjang, texts_file: Path, cross_folder: Path) -> None:
    found = munjang("encode", texts_file, "-m", cross_folder)
    assert found.code == 3
    assert "munjang rerank" in found.err
