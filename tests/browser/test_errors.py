"""What goes wrong is shown in its place, in the server's words, and the page goes on working."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.conftest import Opener
from tests.serve.conftest import LIMITS, Running, running

from munjang import SentenceEncoder
from munjang.serve.settings import ServerSettings

KEY = "a-key-for-the-page-only"
LANGUAGES = pytest.mark.parametrize("language", ["ko", "en"])


@pytest.fixture(scope="module")
def locked(model: SentenceEncoder) -> Iterator[Running]:
    with running(ServerSettings(key=KEY, analyser="bigrams", limits=LIMITS), model) as started:
        yield started


@LANGUAGES
def test_a_filter_that_cannot_be_read_is_shown_and_then_mended(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        shown.page.fill("#where", "year >")
        shown.page.press("#where", "Enter")
        said = shown.shown("#search-out .problem").inner_text()
        assert shown.words("problem") in said
        expected = server.post("/api/libraries/sample/search", {"query": "a", "where": "year >"}).json["error"]["message"]
        assert expected.splitlines()[0] in said
        shown.page.fill("#where", "")
        shown.page.press("#where", "Enter")
        assert shown.shown(".hit").count() == 10


@LANGUAGES
def test_what_is_missing_is_asked_for(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        page = shown.page
        for panel, fill, words in [
            ("compare", "#compare-texts", "compare.few"),
            ("keywords", "#keywords-text", "keywords.empty"),
            ("upload", "#upload-name", "upload.none"),
        ]:
            shown.go(panel)
            page.fill(fill, "")
            assert shown.submit(panel, ".out .quiet").all_inner_texts()[-1] == shown.words(words)
        for panel in ("groups", "map"):
            shown.go(panel).locator("[value=own]").check()
            few = re.sub(r"\{count(\|\w+\|(\w+))?\}", lambda found: f"4 {found[2]}" if found[2] else "4", shown.words("source.few"))
            assert few in shown.submit(panel, ".problem").inner_text()


@LANGUAGES
def test_a_file_without_texts_says_why(server: Running, open_page: Opener, tmp_path: Path, language: str) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("x,y\n1,2\n")
    with open_page(server, language) as shown:
        shown.go("upload")
        shown.page.set_input_files("#upload-file", broken)
        assert "text" in shown.submit("upload", ".problem").inner_text()
        shown.page.fill("#upload-name", "../evil")
        shown.page.click("#upload-form button.main")
        shown.until("document.querySelector('#upload-out .problem')")
        assert server.get("/api/libraries").json["libraries"][0]["sample"] is True


def test_a_server_that_is_gone_is_said_to_be_gone(server: Running, open_page: Opener) -> None:
    with open_page(server) as shown:
        shown.page.route("**/api/**", lambda route: route.abort())
        shown.page.press("#query", "Enter")
        assert shown.words("unreachable") in shown.shown("#search-out .problem").inner_text()


@LANGUAGES
def test_a_server_with_a_key_asks_for_it_until_it_is_right(locked: Running, open_page: Opener, language: str) -> None:
    with open_page(locked, language, ready=False) as shown:
        page = shown.page
        page.locator("#key-dialog").wait_for()
        assert page.locator("#key-title").inner_text() == shown.words("key.title")
        page.fill("#key", "not the key at all")
        page.press("#key", "Enter")
        shown.until("document.querySelector('#key-dialog').open && !document.querySelector('#key').value")
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        page.wait_for_selector("html[data-ready]")
        assert page.locator(".hit").count() == 10
        assert page.locator("#rerank").is_enabled()
        shown.go("upload")
        assert page.locator("#upload-form button.main").is_disabled()


def test_whoever_has_no_key_may_leave_the_question(locked: Running, open_page: Opener) -> None:
    with open_page(locked, ready=False) as shown:
        shown.page.locator("#key-dialog").wait_for()
        shown.page.keyboard.press("Escape")
        assert "key" in shown.shown("#search-out .problem").inner_text()
