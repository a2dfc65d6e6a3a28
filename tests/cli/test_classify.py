"""`munjang classify`: label, fit, apply, evaluate; hostile files; a run that was killed."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analyze.classify.word_encoder import write_texts
from tests.cli.doc_pages import run_lines, write_shown_files

import munjang.cli.label_files as label_files
from munjang.models import registry

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    texts, labels = write_texts(8)
    write_table(
        tmp_path / "examples.csv", ["id", "text", "label"], [[f"d{n}", *row] for n, row in enumerate(zip(texts, labels, strict=True))]
    )
    new, _ = write_texts(4, seed=1)
    write_table(tmp_path / "new.csv", ["text", "label"], [[text, "old"] for text in new])
    return tmp_path


def write_table(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([head, *rows])


@pytest.fixture
def model(tiny_bert_folder: Path) -> tuple[str, str]:
    return ("-m", str(tiny_bert_folder))


def fit(munjang: Callable[..., Any], files: Path, model: tuple[str, str], *more: str) -> Any:
    outcome = munjang("classify", "fit", files / "examples.csv", "-o", files / "made", "--strength", "10", "--json", *model, *more)
    assert outcome.code == 0, outcome.err
    return outcome.json


def test_fit_apply_and_evaluate_go_together(munjang: Callable[..., Any], files: Path, model: tuple[str, str]) -> None:
    facts = fit(munjang, files, model, "--curve", "1,2", "--html", str(files / "fit.html"), "--doubtful", str(files / "doubtful.csv"))
    assert [each["label"] for each in facts["labels"]] == ["경제", "날씨", "스포츠"]
    assert [point["examples"] for point in facts["curve"]] == [1, 2]
    assert facts["doubtful"] == len((files / "doubtful.csv").read_text(encoding="utf-8").splitlines()) - 1
    answer = munjang("classify", "apply", files / "made", files / "new.csv", "-o", files / "out.csv", "--json").json
    assert answer["rows"] == 12
    rows = list(csv.DictReader((files / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["label"] for row in rows] == ["old"] * 12  # what was there stays
    assert {row["label_2"] for row in rows} <= {"경제", "날씨", "스포츠"}
    report = munjang("classify", "evaluate", files / "made", files / "examples.csv", "--compare", files / "made", "--json").json
    assert report["accuracy"] > 0.5
    assert report["compare"]["accuracy"]["difference"] == 0
    shown = munjang("classify", "evaluate", files / "made", files / "examples.csv", "--html", files / "e.html", "--language", "ko")
    assert "macro-F1" in shown.out
    assert "혼동 행렬" in (files / "e.html").read_text(encoding="utf-8")
    assert "<h2>Calibration</h2>" in (files / "fit.html").read_text(encoding="utf-8")


def test_a_first_word_that_is_no_sub_command_is_a_file_to_label(munjang: Callable[..., Any], files: Path, model: tuple[str, str]) -> None:
    outcome = munjang("classify", files / "new.csv", "--labels", "경제,스포츠", "--json", *model)
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(lines) == 12
    assert {line["label"] for line in lines} <= {"경제", "스포츠"}
    described = files / "labels.csv"
    write_table(described, ["name", "description", "words"], [["경제", "돈과 시장", "금리, 환율"], ["날씨", "", "비;눈"]])
    shown = munjang("classify", files / "new.csv", "--labels", described, *model)
    assert shown.code == 0
    assert "runner-up" in shown.out
    assert munjang("classify", files / "none.csv", "--labels", "a,b").code == 3
    assert "at least two" in munjang("classify", files / "new.csv", "--labels", "경제", *model).err
    assert "no such file" in munjang("classify", files / "new.csv", "--labels", "labels.jsonl", *model).err


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["비가", "날씨"], ["눈이", "날씨"]], "the same label"),
        ([["비가", "날씨"], ["눈이", ""]], "row 2: 'label' is empty"),
        ([["비가", "날씨"], [" ", "눈"]], "row 2: the text is empty"),
    ],
)
def test_hostile_examples_get_a_clear_answer(
    munjang: Callable[..., Any], tmp_path: Path, model: tuple[str, str], rows: list[list[str]], words: str
) -> None:
    write_table(tmp_path / "bad.csv", ["text", "label"], rows)
    outcome = munjang("classify", "fit", tmp_path / "bad.csv", "-o", tmp_path / "made", *model)
    assert outcome.code == 3
    assert words in outcome.err
    assert not (tmp_path / "made").exists()


def test_a_missing_text_is_named_with_its_line(munjang: Callable[..., Any], tmp_path: Path, model: tuple[str, str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "비가", "label": 1}\n{"text": null, "label": 2}\n', encoding="utf-8")
    outcome = munjang("classify", "fit", tmp_path / "bad.jsonl", "-o", tmp_path / "made", *model)
    assert outcome.code == 3
    assert "bad.jsonl line 2" in outcome.err


def test_odd_examples_are_learnt_and_told(munjang: Callable[..., Any], tmp_path: Path, model: tuple[str, str]) -> None:
    rows = [["비가 온다", "1"], ["비가  온다", "2"], ["눈이 온다", "2"], ["겨울 날씨", "1"], ["cat", "3"], ["dog", ""], ["", "3"]]
    write_table(tmp_path / "odd.csv", ["text", "label"], rows)
    outcome = munjang("classify", "fit", tmp_path / "odd.csv", "-o", tmp_path / "made", "--skip-unlabelled", "--json", *model)
    assert outcome.json["conflicts"] == [[1, 2]]
    assert [each["label"] for each in outcome.json["labels"]] == ["1", "2", "3"]
    refused = munjang("classify", "apply", tmp_path / "made", tmp_path / "odd.csv", "--precision", "0.99")
    assert refused.code == 2
    assert "is not reached" in refused.err
    labelled = munjang("classify", "apply", tmp_path / "made", tmp_path / "odd.csv", "--json")
    assert json.loads(labelled.out.splitlines()[-1])["label"] == ""  # nothing is known of an empty text
    assert "1 text without a word" in labelled.err


def test_several_labels_are_read_and_written(munjang: Callable[..., Any], files: Path, model: tuple[str, str]) -> None:
    rows = [json.dumps({"text": f"비가 온다 {n}", "labels": ["날씨", "비"] if n % 2 else []}, ensure_ascii=False) for n in range(8)]
    (files / "multi.jsonl").write_text("\n".join(rows), encoding="utf-8")
    outcome = munjang("classify", "fit", files / "multi.jsonl", "-o", files / "multi", "--multi", "--json", *model)
    assert outcome.json["multi"], outcome.err
    munjang("classify", "apply", files / "multi", files / "new.csv", "-o", files / "multi-out.jsonl")
    assert all(
        isinstance(json.loads(line)["labels"], list) for line in (files / "multi-out.jsonl").read_text(encoding="utf-8").splitlines()
    )
    measured = munjang("classify", "evaluate", files / "multi", files / "multi.jsonl", "--compare", files / "multi", "--json")
    assert measured.json["micro_f1"] > 0.5, measured.err
    assert measured.json["compare"]["micro_f1"]["difference"] == 0
    assert sum(each["texts"] for each in measured.json["labels"]) == 8  # two labels of every second text
    shown = munjang("classify", "evaluate", files / "multi", files / "multi.jsonl", "--html", files / "multi.html")
    assert "micro-F1" in shown.out
    assert "micro-F1" in (files / "multi.html").read_text(encoding="utf-8")
    fit(munjang, files, model)
    refused = munjang("classify", "evaluate", files / "multi", files / "multi.jsonl", "--compare", files / "made")
    assert refused.code == 2
    assert "gives one" in refused.err


def test_another_model_is_refused(
    munjang: Callable[..., Any], files: Path, model: tuple[str, str], tiny_folder: Callable[..., Path]
) -> None:
    fit(munjang, files, model)
    outcome = munjang("classify", "apply", files / "made", files / "new.csv", "-m", tiny_folder("roberta"))
    assert outcome.code == 2
    assert "was made with the model" in outcome.err


def test_a_librarys_labels_become_metadata_that_filters_read(
    munjang: Callable[..., Any], files: Path, model: tuple[str, str], tiny_folder: Callable[..., Path]
) -> None:
    assert munjang("add", files / "library.db", files / "examples.csv", *model).code == 0
    outcome = munjang("classify", files / "library.db", "--labels", "경제,스포츠", "--write", "kind", "--json", *model)
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    wanted = {line["id"] for line in lines if line["label"] == "경제"}
    hits = munjang("search", files / "library.db", "금리", "--where", "kind = '경제'", "--top", "100", "--json", *model).json
    assert {hit["id"] for hit in hits} == wanted
    again = munjang("classify", files / "library.db", "--labels", "경제,스포츠", "--write", "kind", *model)
    assert "into 0 documents" in again.err
    fit(munjang, files, ("-m", str(tiny_folder("roberta"))))  # whose vectors the library does not have
    other = munjang("classify", "apply", files / "made", files / "library.db", "--write", "topic", "--json", *model)
    assert "encoded again" in other.err
    direct = munjang("classify", "apply", files / "made", files / "examples.csv", "--json")
    said = [{line["id"]: line["label"] for line in map(json.loads, each.out.splitlines())} for each in (other, direct)]
    assert said[0] == said[1]
    assert "is for a library" in munjang("classify", files / "new.csv", "--labels", "a,b", "--write", "kind", *model).err


def test_a_killed_run_goes_on_and_writes_what_a_whole_one_writes(
    munjang: Callable[..., Any], files: Path, model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(munjang, files, model)
    texts, _ = write_texts(10, seed=4)
    write_table(files / "large.csv", ["text"], [[text] for text in texts])
    monkeypatch.setattr(label_files, "BLOCK", 8)
    munjang("classify", "apply", files / "made", files / "large.csv", "-o", files / "whole.csv")
    script = (
        "import os, signal, sys\nimport munjang.cli.label_files as files\nfrom munjang.cli.main import run\n"
        "files.BLOCK = 8\nreal, left = files.LabelledFile._write, [5]\n"
        "def dying(self, content):\n"
        "    left[0] -= 1\n"
        "    if not left[0]:\n"
        "        self._handle.write(content[:20]); self._handle.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    real(self, content)\n"
        "files.LabelledFile._write = dying\n"
        "run(sys.argv[1:])\n"
    )
    command = ["classify", "apply", files / "made", files / "large.csv", "-o", files / "out.csv"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run([sys.executable, "-c", script, *command], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (files / "out.csv").exists()
    again = munjang(*command)
    assert "goes on after 24 rows" in again.err
    assert (files / "out.csv").read_bytes() == (files / "whole.csv").read_bytes()
    assert not list(files.glob(".out.csv*"))


def test_every_line_and_block_of_the_page_works(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/classify.md"
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) >= 9
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})
    assert "경제" in capsys.readouterr().out
