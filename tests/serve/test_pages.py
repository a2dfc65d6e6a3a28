"""The page's files: one version at a time, nothing inline, nothing from elsewhere, and the same words in both languages."""

from __future__ import annotations

import re

import pytest
from tests.serve.conftest import Running

from munjang.serve.pages import digest, files

TEXT = {name: content.decode() for name, (content, _) in files().items()}
OURS = sorted(name for name in TEXT if name not in ("map.js", "map.css"))


def keys(name: str) -> list[str]:
    return re.findall(r'^  "([\w.]+)": "', TEXT[name], flags=re.MULTILINE)


def test_files_are_kept_for_good_under_their_digest_and_the_front_is_not(server: Running) -> None:
    front = server.get("/")
    assert front.headers["cache-control"] == "no-store"
    names = re.findall(rf'"/page/{digest()}/([\w.]+)"', front.body.decode())
    assert {"main.js", "base.css", "panels.css", "map.css"} <= set(names)
    for name in [*names, "map.js"]:
        found = server.get(f"/page/{digest()}/{name}")
        assert found.status == 200
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["etag"]
        assert found.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "path", ["main.js", "0000/main.js", "{digest}/index.html", "{digest}/../pages.py", "{digest}/nothing.js", "{digest}/"]
)
def test_no_other_file_and_no_other_version_is_served(server: Running, path: str) -> None:
    assert server.get(f"/page/{path.format(digest=digest())}").status == 404


@pytest.mark.parametrize("name", OURS)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(name: str) -> None:
    addresses = [found for found in re.findall(r"https?://[^\s\"']+", TEXT[name]) if not found.startswith("http://www.w3.org/")]
    assert addresses == []
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", TEXT[name])
    if name.endswith(".html"):
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", TEXT[name])


def test_both_languages_have_the_same_words_in_the_same_order() -> None:
    english, korean = keys("words_en.js"), keys("words_ko.js")
    assert english == korean
    assert len(english) == len(set(english)) > 100
    holes = [dict(re.findall(r'^  "([\w.]+)": "(.*)",$', TEXT[name], flags=re.MULTILINE)) for name in ("words_en.js", "words_ko.js")]
    for key in english:
        names = [sorted(re.findall(r"\{(\w+)(?:\|[^}]*)?\}", each[key])) for each in holes]
        assert names[0] == names[1], key


def test_every_word_that_is_asked_for_exists_and_every_word_is_asked_for() -> None:
    known = set(keys("words_en.js"))
    sources = "\n".join(text for name, text in TEXT.items() if not name.startswith("words_"))
    asked = set(re.findall(r'data-t(?:-\w+)?"?[=:] ?"([\w.]+)"', sources)) | set(re.findall(r'"([a-z_]+(?:\.[\w]+)+)"', sources)) & known
    asked |= set(re.findall(r'\bt\("([\w.]+)"', sources))
    assert asked <= known
    families = set(re.findall(r"\bt\(`([\w.]+\.)\$\{", sources))
    assert {key for key in known - asked if not any(key.startswith(family) for family in families)} == set()
