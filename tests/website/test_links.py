"""No link of any Markdown file of the repository leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.website.conftest import ROOT
from website.links import anchors, broken_links

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links([page]) == []


def test_a_missing_file_and_a_missing_heading_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# One\n", encoding="utf-8")
    (tmp_path / "a.md").write_text(
        "[x](b.md#one) [y](b.md#two) [z](c.md) [w](https://example.org/) [v](#here)\n\n## Here\n", encoding="utf-8"
    )
    found = broken_links([tmp_path / "a.md"])
    assert [line.partition("a.md: ")[2] for line in found] == ["b.md#two: there is no such heading", "c.md: there is no such file"]


def test_korean_headings_have_anchors() -> None:
    assert anchors("## 삼중항: 더 가까이\n") == {"삼중항-더-가까이"}


def test_headings_in_code_are_no_headings() -> None:
    assert anchors("```sh\n# no\n```\n# yes\n") == {"yes"}


def test_every_picture_is_used_and_loads_nothing() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (ROOT / "docs/pictures").iterdir():
        assert picture.name in shown
        drawn = picture.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in drawn
        assert "<script" not in drawn
        assert "<title" in drawn
