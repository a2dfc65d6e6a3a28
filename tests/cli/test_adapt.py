"""`munjang adapt`: scores before and after, an ordinary folder, and one message for every bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.data_files import write_sts

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

from munjang.models.sentence_encoder import SentenceEncoder

Call = Callable[..., Any]
TEXTS = [f"Sample {number}: the histogram of tissue shows {'swelling' if number % 2 else 'scarring'} again." for number in range(24)]


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    path = tmp_path / "domain.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def test_it_says_the_scores_before_and_after(munjang: Call, domain: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    dev = tmp_path / "sts.tsv"
    write_sts(dev, scale=5)
    arguments = ["adapt", domain, "--model", tiny_bert_folder, "--method", "mlm", "--extend-vocabulary", "9", "--dev", dev]
    arguments += ["--scale", "0", "5", "--steps", "3", "--learning-rate", "1e-3", "-o", tmp_path / "out"]
    outcome = munjang(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    measured = outcome.json["measured"][0]
    for when, folder in (("before", tiny_bert_folder), ("after", tmp_path / "out")):
        scores = munjang("evaluate", "sts", dev, "--model", folder, "--scale", "0", "5", "--resamples", "0", "--json").json
        assert measured[when]["spearman_cosine"] == pytest.approx(scores["spearman_cosine"], abs=1e-6)
    assert any("words of the data added to the vocabulary" in line for line in outcome.json["messages"])
    kept = json.loads((tmp_path / "out" / "adaptation.json").read_text(encoding="utf-8"))
    assert (kept["measured"], kept["output"]) == ([measured], "out")
    again = munjang(*arguments, "--resume")
    assert again.code == 0, again.err
    assert "spearman_cosine" in again.out
    assert "before" in again.out


@pytest.mark.parametrize("method", ["tsdae", "simcse"])
def test_what_comes_out_is_an_ordinary_folder(munjang: Call, domain: Path, tiny_bert_folder: Path, tmp_path: Path, method: str) -> None:
    outcome = munjang(
        "adapt", domain, "-m", tiny_bert_folder, "--method", method, "--steps", "2", "--batch-size", "4", "-o", tmp_path / "out"
    )
    assert outcome.code == 0, outcome.err
    vectors = SentenceEncoder.load(tmp_path / "out").encode(["the tissue", "rain"])
    assert np.isfinite(vectors).all()
    assert not np.allclose(vectors, SentenceEncoder.load(tiny_bert_folder).encode(["the tissue", "rain"]), atol=1e-7)


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--method", "simcse", "--share", "0.3"], 2, "--share is for mlm and tsdae"),
        (["--method", "tsdae", "--whole-words"], 2, "--whole-words is for mlm"),
        (["--method", "mlm", "--share", "1.5"], 2, "share is 1.5"),
        (["--text-column", "body"], 3, "no column 'body'"),
        (["--dev", "missing.tsv"], 3, "missing.tsv: no such file"),
        (["--extend-vocabulary", "5", "--limit", "2"], 3, "nothing to add"),
    ],
    ids=["share", "whole-words", "range", "column", "dev", "words"],
)
def test_bad_input_is_one_message_and_leaves_nothing(
    munjang: Call, domain: Path, tiny_bert_folder: Path, tmp_path: Path, more: list[str], code: int, says: str
) -> None:
    outcome = munjang("adapt", domain, "-m", tiny_bert_folder, "--steps", "1", "-o", tmp_path / "out", *more)
    assert (outcome.code, outcome.out) == (code, ""), outcome.err
    assert says in outcome.err
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_there_is_not_written_over(munjang: Call, domain: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    outcome = munjang("adapt", domain, "-m", tiny_bert_folder, "--steps", "1", "-o", tmp_path / "out")
    assert outcome.code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]
