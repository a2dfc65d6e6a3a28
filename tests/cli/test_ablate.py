"""`munjang ablate`: small files in, one table out; bad data is refused before the first run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import NOUNS, write_pairs, write_sts

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

Call = Callable[..., Any]
SMALL = ("--scratch-layers", "1", "--scratch-width", "16", "--seeds", "1", "--steps", "1", "--batch-size", "4")


@pytest.fixture
def data(tmp_path: Path) -> tuple[str | Path, ...]:
    write_sts(tmp_path / "sts.tsv", scale=5)
    labels = ("entailment", "neutral", "contradiction")
    lines = [f"the {noun} is in winter\tthe {noun} was on the river\t{labels[number % 3]}" for number, noun in enumerate(NOUNS)]
    (tmp_path / "nli.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *lines]) + "\n", encoding="utf-8")
    sts = tmp_path / "sts.tsv"
    return ("--nli", tmp_path / "nli.tsv", "--sts", sts, "--test", sts, "--scale", "0", "5", "-o", tmp_path / "table")


def test_the_table_is_printed_and_written(munjang: Call, data: tuple[str | Path, ...], tmp_path: Path) -> None:
    outcome = munjang("ablate", *data, *SMALL, "--json")
    assert outcome.code == 0, outcome.err
    table = outcome.json
    assert len(table["rows"]) == 3 * 2 + 7
    assert table["metric"] == "spearman_cosine"
    assert json.loads((tmp_path / "table" / "ablation.json").read_text(encoding="utf-8")) == table
    assert "Ablation" in (tmp_path / "table" / "ablation.html").read_text(encoding="utf-8")
    assert outcome.err.count(" pooling") >= 13


def test_a_model_is_the_start_and_one_half_may_be_left_out(munjang: Call, data: tuple[str | Path, ...], tiny_bert_folder: Path) -> None:
    outcome = munjang("ablate", *data[2:], "-m", tiny_bert_folder, "--seeds", "2", "--steps", "1", "--limit", "8")
    assert outcome.code == 0, outcome.err
    for word in ("regression", "mean", "max", "cls", "±"):
        assert word in outcome.out
    assert "classification" not in outcome.out
    assert "before training" in outcome.err


def test_bad_data_is_refused_before_the_first_run(munjang: Call, data: tuple[str | Path, ...], tmp_path: Path) -> None:
    def refused(*flags: str | Path, code: int, says: str) -> None:
        outcome = munjang("ablate", *data, *SMALL, *flags)
        assert outcome.code == code, outcome.err
        assert says in outcome.err
        assert outcome.err.count("munjang: ") == 1
        assert "Traceback" not in outcome.err
        assert outcome.out == ""
        assert not (tmp_path / "table").exists()

    one_class = write_pairs(tmp_path / "one.tsv", same="entailment", different="entailment")
    refused("--nli", one_class, code=3, says="every label is 'entailment'")
    refused("--scale", "0", "1", code=3, says="sts.tsv line")
    refused("--sts", tmp_path / "none.tsv", code=3, says="no such file")
    refused("--test", tmp_path / "nli.tsv", code=3, says="nli.tsv")
    refused("--model", "all-MiniLM-L6-v2", code=2, says="--model and --scratch-layers")
    refused("--scratch-width", "18", code=2, says="do not divide")
    refused("--learning-rate", "0", code=2, says="learning_rate must be more than 0")
    refused("-o", tmp_path / "sts.tsv", code=2, says="is a file")


def test_no_training_data_is_a_usage_error(munjang: Call, data: tuple[str | Path, ...]) -> None:
    outcome = munjang("ablate", *data[4:], *SMALL)
    assert outcome.code == 2
    assert "nothing to run" in outcome.err
