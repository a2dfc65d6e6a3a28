"""Every line and block of the tutorials works, with a tiny model and a few rows; the slow test runs them as a reader would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.website.conftest import DATA, ROOT
from tests.website.running import run_page, without_numbers, write_files
from website.blocks import shown, shown_files
from website.data import NEEDED, put_data
from website.outputs import WIDTH

PAGES = sorted((ROOT / "docs/tutorials").glob("*.md"))
ROWS = {"topics-of-bills.md": 7 * 60}
"""Rows of a data file in the quick test, where 64 are too few."""
REWRITE = "python -m website.outputs docs/tutorials/*.md writes the outputs anew"


def needs_packages() -> None:
    for package in ("torch", "accelerate", "sklearn", "kiwipiepy", "starlette", "uvicorn", "pydantic", "orjson"):
        pytest.importorskip(package, reason=f"{package}, which tutorials use, is not installed")


@pytest.mark.usefixtures("tiny_default")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works(page: Path, munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_packages()
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    missing = put_data(page.name, DATA, tmp_path, rows=ROWS.get(page.name, 64))
    if missing:
        pytest.skip(f"the data set is not here: {missing}")
    write_files(text, tmp_path)
    assert len(run_page(text, munjang)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page: Path, munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_packages()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    text = page.read_text(encoding="utf-8")
    missing = put_data(page.name, DATA, tmp_path)
    if missing:
        pytest.skip(f"the data set is not here: {missing}")
    write_files(text, tmp_path)
    for part, printed in run_page(text, munjang, long_lines=True):
        assert not part.output or without_numbers(part.output.text) == without_numbers(printed), REWRITE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_korean_tutorial_shows_the_same_lines_files_and_outputs(page: Path) -> None:
    english = page.read_text(encoding="utf-8")
    korean = (ROOT / "docs/ko/tutorials" / page.name).read_text(encoding="utf-8")
    assert [line.words for part in shown(korean) for line in part.lines] == [line.words for part in shown(english) for line in part.lines]
    assert shown_files(korean) == shown_files(english)
    outputs = [[part.output.text for part in shown(text) if part.output] for text in (korean, english)]
    assert outputs[0] == outputs[1], REWRITE


def test_only_tutorials_need_data() -> None:
    assert set(NEEDED) <= {page.name for page in PAGES}
