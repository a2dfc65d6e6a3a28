"""The site: every page has its place in the navigation; where the builder is installed, it builds strictly and loads nothing foreign."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.website.conftest import ROOT
from website.outside_links import inside_only

SETTINGS = ROOT / "website/mkdocs.yml"
BUILDER = ROOT / ".venv-docs/bin/mkdocs"
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//", re.IGNORECASE)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r": (\S+\.md)$", SETTINGS.read_text(encoding="utf-8"), re.MULTILINE)
    there = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there), "add the page to nav in website/mkdocs.yml"


@pytest.mark.parametrize(
    ("link", "place", "wanted"),
    [
        ("[a](../recipes/b.md)", "results.md", "a (`recipes/b.md` in the repository)"),
        ("[a](../train.md)", "tutorials/x.md", "[a](../train.md)"),
        ("[a](../../README.md)", "ko/index.md", "a (`README.md` in the repository)"),
    ],
    ids=["out of docs", "inside docs", "from a folder"],
)
def test_links_out_of_the_documentation_become_names(link: str, place: str, wanted: str) -> None:
    assert inside_only(link, place) == wanted


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if not BUILDER.is_file():
        pytest.skip("mkdocs is not installed: ./run docs installs it")
    command = [BUILDER, "build", "--quiet", "--strict", "--config-file", SETTINGS, "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not LOADED.search(text), page
        assert f'lang="{"ko" if "ko" in page.relative_to(tmp_path / "site").parts else "en"}"' in text[:200]
