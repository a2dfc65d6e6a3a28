from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROWS = "key,title,year\nx,the rain is in the river,2001\ny,비가 많이 온다,2002\nz,the rain is in the river,2003\nw,cat,2004\n"


@pytest.fixture
def news(tmp_path: Path) -> Path:
    path = tmp_path / "news.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def call(munjang: Callable[..., Any], news: Path, tiny_bert_folder: Path) -> Callable[..., Any]:
    return lambda *more: munjang("pairs", news, "--text-column", "title", "--id-column", "key", "--model", tiny_bert_folder, *more)


def test_pairs_come_best_first_and_repeats_apart(call: Callable[..., Any]) -> None:
    found = call("--threshold", "-1", "--json").json
    assert [len(group) for group in found["same"]] == [2]
    assert {row["id"] for row in found["same"][0]} == {"x", "z"}
    scores = [pair["score"] for pair in found["pairs"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert found["pairs"][0]["a"].keys() == {"row", "id", "text"}


def test_a_table_and_a_file_of_pairs(call: Callable[..., Any], tmp_path: Path) -> None:
    shown = call("--threshold", "-1")
    assert shown.code == 0
    assert "repeated texts" in shown.out
    assert call("--threshold", "-1", "-o", tmp_path / "pairs.csv").code == 0
    with (tmp_path / "pairs.csv").open(encoding="utf-8") as handle:
        assert list(next(csv.DictReader(handle))) == ["score", "a", "b", "text_a", "text_b"]


def test_fewer_pairs_than_there_are_is_said(call: Callable[..., Any]) -> None:
    outcome = call("--threshold", "-1", "--top", "1", "--json")
    assert len(outcome.json["pairs"]) == 1
    assert "more pairs" in outcome.err


def test_groups_tie_repeats_together(call: Callable[..., Any]) -> None:
    assert [[row["id"] for row in group] for group in call("--threshold", "2", "--groups", "--json").json] == [["x", "z"]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".txt"])
def test_dedupe_writes_the_rows_that_stay_with_all_their_columns(call: Callable[..., Any], tmp_path: Path, suffix: str) -> None:
    clean = tmp_path / f"clean{suffix}"
    outcome = call("--dedupe", "--threshold", "1.5", "-o", clean, "--json")
    assert (outcome.json["rows"], outcome.json["kept"]) == (4, 3)
    assert outcome.json["dropped"][0]["kept"]["id"] == "x"
    lines = clean.read_text(encoding="utf-8").splitlines()
    if suffix == ".csv":
        assert "\n".join(lines) + "\n" == ROWS.replace("z,the rain is in the river,2003\n", "")
    elif suffix == ".jsonl":
        assert [json.loads(line)["key"] for line in lines] == ["x", "y", "w"]
    else:
        assert lines == ["the rain is in the river", "비가 많이 온다", "cat"]


def test_paraphrases_in_other_words_are_kept_by_max_overlap(call: Callable[..., Any]) -> None:
    assert call("--threshold", "-1", "--max-overlap", "0", "--json").json["pairs"]


def test_wrong_calls_are_refused(call: Callable[..., Any], munjang: Callable[..., Any], tmp_path: Path) -> None:
    assert call("--dedupe", "--groups").code == 2
    assert call("-o", tmp_path / "pairs.txt").code == 2
    assert call("--max-overlap", "1.5").code == 2
    (tmp_path / "empty.txt").write_text("")
    assert munjang("pairs", tmp_path / "empty.txt").code == 3


def test_the_page_about_pairs_runs(munjang: Callable[..., Any], minilm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/pairs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    files = [code for kind, code in blocks if kind in ("csv", "text")]
    for name, code in zip(("questions.csv", "ours.txt", "theirs.txt", "products.csv", "catalogue.csv", "labelled.csv"), files, strict=True):
        (tmp_path / name).write_text(code, encoding="utf-8")
    for line in (line for kind, code in blocks if kind == "sh" for line in code.splitlines()):
        outcome = munjang(*shlex.split(line)[1:], "--model", minilm)
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out.strip()
    for code in (code for kind, code in blocks if kind == "python"):
        exec(compile(code, "docs/pairs.md", "exec"), {})


def test_groups_are_shown_or_written_with_their_numbers(call: Callable[..., Any], tmp_path: Path) -> None:
    shown = call("--threshold", "2", "--groups").out
    assert re.search(r"1\s+x\s+the rain is in the river", shown)
    written = call("--threshold", "2", "--groups", "-o", tmp_path / "groups.csv")
    assert "groups.csv" in written.out
    assert "the rain" not in written.out
    with (tmp_path / "groups.csv").open(encoding="utf-8") as handle:
        assert [(row["group"], row["id"]) for row in csv.DictReader(handle)] == [("1", "x"), ("1", "z")]


def test_pairs_whose_numbers_differ_are_left_out(munjang: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "products.txt"
    file.write_text("갤럭시 S23 128GB\n갤럭시 S23 256GB\n갤럭시 S23 128 GB 자급제\n", encoding="utf-8")
    texts = [(pair["a"]["text"], pair["b"]["text"]) for pair in munjang("pairs", file, "--numbers", "--json").json["pairs"]]
    assert texts == [("갤럭시 S23 128GB", "갤럭시 S23 128 GB 자급제")]
    assert len(munjang("pairs", file, "--json").json["pairs"]) == 3


def test_numbers_do_not_go_with_dedupe(munjang: Callable[..., Any], texts_file: Path) -> None:
    outcome = munjang("pairs", texts_file, "--dedupe", "--numbers")
    assert outcome.code == 2
    assert "--numbers" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "no pairs above 0.999"), (("--groups",), "no groups: no pairs above 0.999"), (("--dedupe",), "no near-duplicates above 0.999")],
)
def test_nothing_found_is_said_in_words(
    munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, options: tuple[str, ...], said: str
) -> None:
    outcome = munjang("pairs", texts_file, *options, "--threshold", "0.999", "--model", tiny_bert_folder)
    assert outcome.out.splitlines()[0] == said
    assert "─" not in outcome.out


@pytest.mark.parametrize("text", [True, False])
def test_a_folder_of_bulk_without_near_duplicates(munjang: Callable[..., Any], news: Path, tiny_bert_folder: Path, text: bool) -> None:
    folder, clean, gone = news.parent / "out", news.parent / "clean.jsonl", news.parent / "gone.csv"
    options = ("--text-column", "title", "--id-column", "key", "--model", tiny_bert_folder, "--workers", "1")
    assert munjang("bulk", news, "-o", folder, *options, *(["--keep-text"] if text else [])).code == 0
    done = munjang("pairs", folder, "--dedupe", "--threshold", "0.9999", "-o", clean, "--dropped", gone, "--json").json
    assert (done["rows"], done["kept"], done["dropped_rows"]) == (4, 3, 1)
    kept = [json.loads(line) for line in clean.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in kept] == ["x", "y", "w"]
    assert ("text" in kept[0]) == text
    assert gone.read_text(encoding="utf-8") == "id,repeats,score\nz,x,1.0\n"
    assert sorted(each.name for each in news.parent.iterdir()) == ["clean.jsonl", "gone.csv", "news.csv", "out"]
    assert "dropped" in munjang("pairs", folder, "--dedupe").out
    assert munjang("pairs", folder, "--dropped", gone).code == 2
    assert "beside which every worker reads and writes" in munjang("pairs", folder, "--dedupe", "--dask", "tls://elsewhere:8786").err
    for dedupe in ([], ["--dedupe"]):
        refused = munjang("pairs", news, *dedupe, "--dask", "local")
        assert (refused.code, "is compared on this machine" in refused.err) == (2, True)


def test_a_cluster_drops_the_same_near_duplicates(munjang: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    vectors = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    np.save(tmp_path / "rows.npy", np.concatenate([vectors, vectors[:40] + np.float32(0.01)]))
    rows = tmp_path / "rows.npy"
    for name, where in (("here.csv", []), ("there.csv", ["--dask", "local"])):
        assert munjang("pairs", rows, "--dedupe", "--dropped", tmp_path / name, *where, "--json").json["dropped_rows"] == 40
    assert (tmp_path / "there.csv").read_text(encoding="utf-8") == (tmp_path / "here.csv").read_text(encoding="utf-8")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here.csv", "rows.npy", "there.csv"]


def test_dropped_rows_of_a_file_are_written_too(call: Callable[..., Any], tmp_path: Path) -> None:
    assert call("--dedupe", "--dropped", tmp_path / "gone.jsonl").code == 0
    rows = [json.loads(line) for line in (tmp_path / "gone.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"id": "z", "repeats": "x", "score": 1.0} in rows
