"""The page in Debian's Chromium, driven by Playwright, against a real server on a loopback port with tiny models.

Every page that a test opens is watched: a dialog, a request to anywhere else, an error in the console or in a script fails the test.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; it drives the browser")

from tests.serve.conftest import LIMITS, Running, make_reranker, model, reranker, running  # noqa: E402

from munjang import CrossEncoder, SentenceEncoder  # noqa: E402
from munjang.serve.settings import ServerSettings  # noqa: E402

__all__ = ["make_reranker", "model", "reranker"]

CHROMIUM = shutil.which("chromium")
PATIENCE = 60_000
"""Milliseconds: a busy machine is slow, not wrong."""

Opener = Callable[..., Any]


@dataclass
class Watched:
    """A page, and what it must not do."""

    page: Any
    url: str
    language: str
    forbidden: list[str] = field(default_factory=list)

    def go(self, panel: str) -> Any:
        self.page.click(f"#tab-{panel}")
        return self.page.locator(f"#panel-{panel}")

    def submit(self, panel: str, wait_for: str) -> Any:
        """Send a panel's form and return what appears."""
        self.page.click(f"#{panel}-form button.main")
        return self.shown(f"#panel-{panel} {wait_for}")

    def shown(self, selector: str) -> Any:
        found = self.page.locator(selector)
        found.first.wait_for()
        self.until("!document.querySelector('form.busy')")
        return found

    def until(self, condition: str) -> None:
        """Wait until an expression holds; asked from outside, because the page's own policy forbids to evaluate strings inside it."""
        end = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)

    def words(self, name: str) -> str:
        """Return the page's own words in its language."""
        return str(self.page.evaluate("async ([path, name]) => (await import(path)).default[name]", [self._words(), name]))

    def _words(self) -> str:
        main = self.page.locator("script[type=module]").get_attribute("src")
        return str(main).replace("main.js", f"words_{self.language}.js")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; closed after each file, because Playwright's loop would be in the way of other tests."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Opener:
    """Return a context manager that opens the page of a server and watches it."""

    @contextmanager
    def opened(server: Running, language: str = "en", *, width: int = 1280, theme: str = "light", ready: bool = True) -> Iterator[Watched]:
        locale = {"en": "en-US", "ko": "ko-KR"}[language]
        context = browser.new_context(locale=locale, color_scheme=theme, viewport={"width": width, "height": 900}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        watched = Watched(context.new_page(), server.url, language)
        _watch(watched)
        watched.page.goto(server.url)
        if ready:
            watched.page.wait_for_selector("html[data-ready]")
        yield watched
        context.close()
        assert watched.forbidden == []

    return opened


def _watch(watched: Watched) -> None:
    def dialog(found: Any) -> None:
        watched.forbidden.append(f"dialog: {found.message}")
        found.dismiss()

    def request(found: Any) -> None:
        if not found.url.startswith((f"{watched.url}/", "blob:", "data:")):
            watched.forbidden.append(f"request: {found.url}")

    def console(found: Any) -> None:
        refused = "Failed to load resource" in found.text  # the server said no, which is for the page to show
        if found.type == "error" and not refused:
            watched.forbidden.append(f"console: {found.text}")

    watched.page.on("dialog", dialog)
    watched.page.on("request", request)
    watched.page.on("console", console)
    watched.page.on("pageerror", lambda error: watched.forbidden.append(f"script: {error}"))
    watched.page.on("popup", lambda found: watched.forbidden.append(f"window: {found.url}"))


@pytest.fixture(scope="module")
def server(model: SentenceEncoder, reranker: CrossEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that has nothing yet."""
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams", limits=LIMITS)
    with running(settings, model, reranker) as started:
        started.service.libraries.warm()
        yield started


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    rows = "".join(f"{number},the cat was on train {number},{'pets' if number % 2 else 'trains'}\n" for number in range(40))
    path = tmp_path / "our trains.csv"
    path.write_text("id,text,kind\n" + rows, encoding="utf-8")
    return path
