"""Every page that tells to run something has a test that runs it; here are those that have no test elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.website.conftest import ROOT
from tests.website.running import run_page
from website.blocks import blocks, shown, shown_files

PAGES = sorted((ROOT / "docs").glob("*.md"))
TESTS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path.parent.name != "website")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_with_something_to_run_has_a_test(page: Path) -> None:
    if not shown(page.read_text(encoding="utf-8")) or page.name == "index.md":
        return
    assert f"docs/{page.name}" in TESTS or f'"{page.stem}"' in TESTS


@pytest.mark.usefixtures("tiny_default")
def test_the_index_works(munjang: Callable[..., Any]) -> None:
    assert len(run_page((ROOT / "docs/index.md").read_text(encoding="utf-8"), munjang)) == 1


def test_the_korean_index_shows_the_same_lines() -> None:
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("docs/index.md", "docs/ko/index.md")]
    assert [part.lines for part in shown(pages[0])] == [part.lines for part in shown(pages[1])]


KOREAN = sorted(path for path in (ROOT / "docs/ko").glob("*.md") if path.name != "index.md")


def test_every_how_to_page_is_there_in_korean() -> None:
    assert {page.name for page in PAGES} - {page.name for page in KOREAN} == {"architecture.md", "index.md", "reliability.md", "results.md"}


@pytest.mark.parametrize("page", KOREAN, ids=lambda page: page.stem)
def test_a_korean_page_shows_the_same_blocks(page: Path) -> None:
    korean, english = (path.read_text(encoding="utf-8") for path in (page, ROOT / "docs" / page.name))
    assert [block.text for block in blocks(korean)] == [block.text for block in blocks(english)]
    assert shown_files(korean) == shown_files(english)
    assert f"English: [{page.name}](../{page.name})" in korean


def test_explanations_run_nothing() -> None:
    for page in (*(ROOT / "docs/explain").glob("*.md"), *(ROOT / "docs/ko/explain").glob("*.md")):
        assert not shown(page.read_text(encoding="utf-8")), page
