"""`munjang classify` over large files: memory stays bounded, and a cross-encoder judges labels through the command."""

from __future__ import annotations

import csv
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import write_cross_encoder
from tests.static_model import write_static

import munjang.cli.label_files as label_files
from munjang import CrossEncoder
from munjang.analyze.classify import zero_shot
from munjang.cli.main import run

LABELS = {"0": "contradiction", "1": "entailment", "2": "neutral"}


def write_rows(path: Path, rows: int) -> Path:
    """Write texts that say their own number, so that order can be seen."""
    with path.open("w", encoding="utf-8") as handle:
        handle.write("id\ttext\tlabel\n")
        handle.writelines(f"{n}\tthe {'cat' if n % 2 else 'rain'} {n % 97} on the train {n}\t{n % 2}\n" for n in range(rows))
    return path


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_static(tmp_path_factory.mktemp("static"))


@pytest.mark.parametrize("way", ["apply", "label"])
def test_memory_does_not_grow_with_the_file(static: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(label_files, "BLOCK", 128)
    monkeypatch.setattr(zero_shot, "SAMPLE", 256)
    examples, made = write_rows(tmp_path / "examples.tsv", 40), tmp_path / "made"
    assert run(["classify", "fit", str(examples), "-o", str(made), "--strength", "10", "-m", str(static)]) == 0

    def peak(rows: int) -> int:
        path, output = write_rows(tmp_path / f"{rows}.tsv", rows), str(tmp_path / f"{rows}.jsonl")
        command = ["apply", str(made), str(path)] if way == "apply" else ["label", str(path), "--labels", "cat,rain", "-m", str(static)]
        tracemalloc.start()
        try:
            assert run(["classify", *command, "-o", output]) == 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(300)  # what is loaded at the first call does not count
    small, large = peak(500), peak(4_000)
    assert large < small + 500_000, "3,500 more rows take more than a megabyte if they are held"
    rows = [json.loads(line) for line in (tmp_path / "4000.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [str(number) for number in range(4_000)]


def test_a_cross_encoder_judges_every_label(munjang: Callable[..., Any], tmp_path: Path) -> None:
    judge, other = tmp_path / "judge", tmp_path / "other"
    for folder in (judge, other):
        folder.mkdir()
        write_cross_encoder(folder, 3)
    config = json.loads((judge / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": LABELS, "label2id": {label: int(number) for number, label in LABELS.items()}}
    (judge / "config.json").write_text(json.dumps(config), encoding="utf-8")
    texts = ["the rain", "비가 많이 온다", "cat", "the dog was on the train"]
    (tmp_path / "new.csv").write_text("\n".join(["text", *texts]), encoding="utf-8")
    command = ["classify", tmp_path / "new.csv", "--labels", "날씨,cat", "--scorer", judge, "-o", tmp_path / "out.csv", "--json"]
    assert munjang(*command).json["rows"] == 4
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    sentences = ["이 글은 날씨에 관한 글이다.", "This text is about cat."]
    pairs = [(text, sentence) for text in texts for sentence in sentences]
    logits = np.asarray(CrossEncoder.load(judge).predict(pairs), dtype=np.float64)
    odds = (logits[:, 1] - np.logaddexp(logits[:, 0], logits[:, 2])).reshape(4, 2)
    odds -= len(texts) / (len(texts) + 20) * (odds.mean(axis=0) - odds.mean())
    assert [row["label"] for row in rows] == [["날씨", "cat"][best] for best in odds.argmax(axis=1)]
    refused = munjang("classify", tmp_path / "new.csv", "--labels", "날씨,cat", "--scorer", other)
    assert refused.code == 2
    assert "expected one called 'entailment'" in refused.err
