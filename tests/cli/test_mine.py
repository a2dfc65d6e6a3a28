"""`munjang mine`: pairs in, triplets out; nothing is written where there is nothing to write."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import NOUNS

Call = Callable[..., Any]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = [f"where is the {noun}\tthe {noun} is in the river" for noun in NOUNS]
    path.write_text("\n".join(["sentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["triplets.jsonl", "triplets.tsv", "triplets.csv"])
def test_each_pair_gets_negatives_that_are_not_its_own(munjang: Call, pairs: Path, tiny_bert_folder: Path, name: str) -> None:
    output = pairs.parent / name
    outcome = munjang("mine", pairs, "-m", tiny_bert_folder, "--negatives", "2", "-o", output, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["pairs"] == len(NOUNS)
    assert outcome.json["triplets"] == 2 * len(NOUNS)
    assert outcome.json["short"] == outcome.json["empty"] == 0
    text = output.read_text(encoding="utf-8")
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
    else:
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if name.endswith("tsv") else ","))
    assert len(rows) == 2 * len(NOUNS)
    for row in rows:
        noun = row["anchor"].split()[-1]
        assert row["positive"] == f"the {noun} is in the river"
        assert row["negative"] in {f"the {other} is in the river" for other in NOUNS if other != noun}
    assert munjang("lint", output).code == 0


def test_a_corpus_ranks_and_seeded_sampling(munjang: Call, pairs: Path, tiny_bert_folder: Path, texts_file: Path) -> None:
    flags = ["-m", tiny_bert_folder, "--corpus", texts_file, "--first-rank", "1", "--last-rank", "3", "--sampling", "random", "--seed", "4"]
    made = [pairs.parent / "one.jsonl", pairs.parent / "two.jsonl"]
    for output in made:
        outcome = munjang("mine", pairs, *flags, "-o", output)
        assert outcome.code == 0, outcome.err
        assert "written to" in outcome.out
    corpus = set(texts_file.read_text(encoding="utf-8").splitlines())
    assert {json.loads(line)["negative"] for line in made[0].read_text(encoding="utf-8").splitlines()} <= corpus
    assert made[0].read_bytes() == made[1].read_bytes()


def test_columns_may_be_named_and_broken_rows_left_out(munjang: Call, pairs: Path, tiny_bert_folder: Path) -> None:
    lines = pairs.read_text(encoding="utf-8").splitlines()
    pairs.write_text("\n".join(["left\tright", *lines[1:], "alone\t"]) + "\n", encoding="utf-8")
    named = [pairs, "-m", tiny_bert_folder, "--column", "a=left", "--column", "b=right", "-o", pairs.parent / "t.tsv"]
    outcome = munjang("mine", *named)
    assert outcome.code == 3
    assert "pairs.tsv line 12" in outcome.err
    outcome = munjang("mine", *named, "--skip-bad", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["pairs"] == len(NOUNS)
    assert "1 row left out" in outcome.err


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (("--max-score", "-1.5"), 3, "nothing was written"),
        (("--absolute-margin", "2.5"), 3, "nothing was written"),
        (("--first-rank", "5", "--last-rank", "5"), 2, "ranks 5 to 5"),
        (("--corpus", "none.txt"), 3, "none.txt"),
        (("-m", "no-such-model"), 3, "no-such-model"),
        (("--column", "a=nothing", "--column", "b=sentence2"), 3, "nothing"),
        (("-o", "triplets.xlsx"), 2, "no known format, expected .csv, .tsv, .jsonl"),
        (("-o", "nowhere/triplets.tsv"), 2, "a folder that exists"),
        (("--negatives", "0"), 2, "negatives"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_old_file_stays(
    munjang: Call,
    pairs: Path,
    tiny_bert_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(pairs.parent)
    Path("old.jsonl").write_text("old", encoding="utf-8")
    outcome = munjang("mine", pairs, "-m", tiny_bert_folder, "-o", "old.jsonl", *flags)
    assert outcome.code == code, outcome.err
    assert says in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert Path("old.jsonl").read_text(encoding="utf-8") == "old"
    assert {path.name for path in Path().iterdir()} == {"old.jsonl", "pairs.tsv"}


def test_a_missing_file_is_bad_input(munjang: Call, tmp_path: Path) -> None:
    outcome = munjang("mine", tmp_path / "none.tsv", "-o", tmp_path / "t.tsv")
    assert outcome.code == 3
    assert "none.tsv" in outcome.err
