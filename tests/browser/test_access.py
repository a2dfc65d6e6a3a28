"""axe-core looks at every panel in both languages, both themes, on a desk and on a phone, and finds nothing serious."""

from __future__ import annotations

import shutil
import subprocess
import tarfile

import pytest
from tests.browser.conftest import Opener, Watched
from tests.serve.conftest import Running

GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, fetched now and kept nowhere."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed; it fetches axe-core")
    folder = tmp_path_factory.mktemp("axe")
    try:
        got = subprocess.run([npm, "pack", "axe-core", "--silent"], cwd=folder, capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core could not be fetched in time")
    packed = next(folder.glob("axe-core-*.tgz"), None)
    if got.returncode or packed is None:
        pytest.skip("axe-core cannot be fetched without a network")
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def grave_violations(shown: Watched, axe: str) -> list[str]:
    shown.page.evaluate(axe)
    found = shown.page.evaluate("async () => (await axe.run(document)).violations")
    places = [(each, node) for each in found if each["impact"] in GRAVE for node in each["nodes"]]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each, node in places]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("language", "width"), [("ko", 1440), ("en", 390)])
def test_nothing_serious_is_found(server: Running, open_page: Opener, axe: str, theme: str, language: str, width: int) -> None:
    with open_page(server, language, width=width, theme=theme) as shown:
        page = shown.page
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.click(".hit:nth-child(1) .chip.like")
        shown.shown("#liked .chip")
        assert grave_violations(shown, axe) == []
        for panel, appears in [
            ("compare", ".heat"),
            ("keywords", ".highlighted"),
            ("groups", ".group"),
            ("labels", ".bars"),
            ("map", "canvas#map"),
        ]:
            shown.go(panel)
            shown.submit(panel, appears)
            if panel == "compare":
                page.locator("#compare-out td button").nth(1).click()
                shown.shown("#tokens-out .heat")
            assert grave_violations(shown, axe) == [], panel
        shown.go("upload")
        shown.submit("upload", ".out .quiet")
        assert grave_violations(shown, axe) == []
        shown.go("search")
        page.fill("#where", "year >")
        page.press("#where", "Enter")
        shown.shown(".problem")
        assert grave_violations(shown, axe) == []
