"""docs/adapt.md: its lines run, and its table holds every objective and setting that there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

from munjang.train.adapt.mlm import MlmSettings
from munjang.train.adapt.text_objective import SimCseSettings
from munjang.train.adapt.tsdae import TsdaeSettings
from munjang.train.sentence_task import TEXT_OBJECTIVES

PAGE = Path(__file__).parents[2] / "docs/adapt.md"


def test_every_objective_over_plain_text_is_explained_with_its_settings() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("| objective | settings |")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \|(.+)\|$", text, flags=re.MULTILINE))
    assert set(rows) == set(TEXT_OBJECTIVES)
    for name, settings in (("mlm", MlmSettings), ("tsdae", TsdaeSettings), ("simcse", SimCseSettings)):
        assert all(f"`{field.name}`" in rows[name] for field in fields(settings)), name


def test_every_line_works(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_find_default", lambda: registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package"))
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    assert run_lines(PAGE, munjang) == 4
    assert (tmp_path / "my-model" / "modules.json").is_file()
