"""docs/train.md: its lines run, and its tables hold every key, default, objective and setting that there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

from munjang.train.examples import DataSource
from munjang.train.objectives.registry import OBJECTIVES, SCORE_LOSSES
from munjang.train.recipe import ModelRecipe, Recipe, ScratchRecipe, StageRecipe

PAGE = Path(__file__).parents[2] / "docs/train.md"
TABLES = {
    "Top": (Recipe, {"model", "stages"}),
    "[model]": (ModelRecipe, set()),
    "[model.scratch]": (ScratchRecipe, set()),
    "[[stage]]": (StageRecipe, set()),
    "[[stage.data]] and [stage.dev]": (DataSource, set()),
}
"""Heading → the dataclass behind it, and its fields that are tables of their own."""


def shown_default(field: Field[Any]) -> str:
    if (field.default is MISSING and field.default_factory is MISSING) or field.name == "data":
        return "required"
    if field.default in (None, "", ()) or field.default is MISSING:
        return "–"
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return f'"{field.default}"' if isinstance(field.default, str) else f"{field.default:g}"


def section(heading: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    return re.split(r"\n##+ ", text)[0]


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_of_a_recipe_is_explained_with_its_default(heading: str) -> None:
    kind, apart = TABLES[heading]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.+) \|$", section(f"### {heading}"), flags=re.MULTILINE)
    assert [(name, default) for name, default, _ in rows] == [
        (field.name, shown_default(field)) for field in fields(kind) if field.name not in apart
    ]


def test_every_objective_is_explained_with_its_settings() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(.+)\|$", section("## Which objective"), flags=re.MULTILINE))
    assert set(rows) == set(OBJECTIVES)
    for name, kind in OBJECTIVES.items():
        assert all(f"`{field.name}`" in rows[name] for field in fields(kind.settings_type)), name


def test_every_loss_of_a_cross_encoder_is_explained_with_its_settings() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(.+)\|$", section("## Cross-encoders"), flags=re.MULTILINE))
    assert set(rows) == set(SCORE_LOSSES)
    for name, kind in SCORE_LOSSES.items():
        assert is_dataclass(kind)
        assert all(f"`{field.name}`" in rows[name] for field in fields(kind)), name


def test_every_line_works(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    assert run_lines(PAGE, munjang) >= 7
    assert (tmp_path / "my-model" / "report.html").is_file()
    assert (tmp_path / "ablation" / "ablation.html").is_file()
