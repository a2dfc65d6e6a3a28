"""The page without a mouse: tabs, the skip link, Enter and Escape, a focus that can be seen; and at the width of a phone."""

from __future__ import annotations

import pytest
from tests.browser.conftest import Opener
from tests.serve.conftest import Running

PANELS = ["search", "compare", "keywords", "groups", "labels", "map", "upload"]


def test_arrows_go_from_tab_to_tab_and_the_address_follows(server: Running, open_page: Opener) -> None:
    with open_page(server) as shown:
        page = shown.page
        page.focus("#tab-search")
        for panel in [*PANELS[1:], PANELS[0]]:
            page.keyboard.press("ArrowRight")
            page.locator(f"#panel-{panel}").wait_for()
            assert page.evaluate("document.activeElement.id") == f"tab-{panel}"
            assert page.url.endswith(f"#{panel}")
            assert page.locator("[role=tabpanel]:visible").count() == 1
        page.keyboard.press("End")
        page.locator("#panel-upload").wait_for()
        assert page.locator("#tab-upload").get_attribute("aria-selected") == "true"
        page.go_back()
        page.locator("#panel-search").wait_for()


def test_the_skip_link_comes_first_and_leads_to_the_content(server: Running, open_page: Opener) -> None:
    with open_page(server) as shown:
        shown.page.keyboard.press("Tab")
        assert shown.page.locator(".skip").bounding_box()["y"] >= 0
        shown.page.keyboard.press("Enter")
        assert shown.page.evaluate("document.activeElement.id") == "main"
        shown.page.keyboard.press("Tab")
        assert shown.page.evaluate("document.activeElement.id") == "query"


def test_enter_searches_and_escape_clears(server: Running, open_page: Opener) -> None:
    with open_page(server) as shown:
        shown.page.fill("#query", "coffee")
        shown.page.keyboard.press("Enter")
        assert shown.shown(".hit").count() == 10
        shown.page.keyboard.press("Escape")
        assert shown.page.locator("#query").input_value() == ""
        assert shown.page.locator(".hit").count() == 0


def test_everything_that_gets_the_focus_shows_it(server: Running, open_page: Opener) -> None:
    seen = "(() => { const s = getComputedStyle(document.activeElement); return [s.outlineStyle, document.activeElement.tagName]; })()"
    with open_page(server) as shown:
        for _ in range(25):
            shown.page.keyboard.press("Tab")
            style, tag = shown.page.evaluate(seen)
            assert style != "none" or tag in ("BODY", "MAIN"), tag


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_need_not_scroll_sideways(server: Running, open_page: Opener, language: str, width: int) -> None:
    with open_page(server, language, width=width) as shown:
        for panel in PANELS:
            shown.go(panel)
            if panel in ("compare", "keywords"):
                shown.submit(panel, ".heat, .highlighted")
            assert shown.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, panel
