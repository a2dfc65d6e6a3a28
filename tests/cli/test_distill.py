"""`munjang distill` on tiny models, and docs/distill.md: its lines run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

PAGE = Path(__file__).parents[2] / "docs/distill.md"


def test_every_line_of_the_page_works(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    assert run_lines(PAGE, munjang) == 4
    measures = json.loads((tmp_path / "korean/distillation.json").read_text(encoding="utf-8"))["measures"]
    assert [one["name"].split(",")[0] for one in measures] == ["MSE", "MSE", "accuracy", "accuracy", "Spearman"]
    assert json.loads((tmp_path / "small/config.json").read_text(encoding="utf-8"))["num_hidden_layers"] == 1
    assert list((tmp_path / "teacher-vectors").glob("*.npy"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--texts", "texts.txt"], 2, "no student was given"),
        (["--layers", "0"], 2, "nothing to learn from"),
        (["--layers", "first", "--texts", "texts.txt"], 2, "expected numbers with commas"),
        (["--layers", "0", "--texts", "missing.txt"], 3, "no such file"),
        (["--layers", "9", "--texts", "texts.txt"], 2, "expected numbers from 0 to"),
        (["--layers", "0", "--parallel", "texts.txt"], 3, "which hold source and translations cannot be told"),
        (["--layers", "0", "--texts", "texts.txt", "--dev-sts", "texts.txt"], 3, "texts.txt: columns"),
    ],
    ids=["no-student", "no-data", "layers-no-numbers", "no-file", "no-such-layer", "not-parallel", "not-scored"],
)
def test_what_cannot_work_is_refused_before_any_work(
    arguments: list[str], code: int, message: str, munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path
) -> None:
    named = [str(texts_file.parent / word) if word.endswith(".txt") else word for word in arguments]
    outcome = munjang("distill", "--teacher", tiny_bert_folder, *named, "-o", tmp_path / "out")
    assert outcome.code == code
    assert message in outcome.err
    assert not (tmp_path / "out").exists()
