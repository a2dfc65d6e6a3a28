"""Documents that try to become part of the page stay documents in every panel: no dialog, no request, no script, and all of them shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.conftest import Opener, Watched
from tests.browser.hostile import DOCUMENTS
from tests.serve.conftest import Running


@pytest.fixture(scope="module")
def hostile(server: Running) -> Iterator[Running]:
    """A server whose only library holds them, as texts, ids, names of fields and their values."""
    records = [{"id": f"{number} {text}", "text": text, "metadata": {"said": text, text: number}} for number, text in enumerate(DOCUMENTS)]
    assert server.post("/api/libraries", {"name": "hostile", "records": records}).status == 201
    yield server
    server.call("DELETE", "/api/libraries/hostile")


def unharmed(shown: Watched) -> None:
    shown.page.wait_for_timeout(200)
    assert shown.page.evaluate("window.hit") is None
    assert (
        shown.page.evaluate("document.querySelectorAll('main :is(script, img, iframe, object, embed, style, link, base, svg)').length") == 0
    )


def test_there_are_sixty_of_them() -> None:
    assert len(DOCUMENTS) == len(set(DOCUMENTS)) == 60


def test_hits_show_them_as_they_are(hostile: Running, open_page: Opener) -> None:
    with open_page(hostile) as shown:
        page = shown.page
        page.fill("#query", "<script>alert(1)</script> x")
        page.select_option("#count", "100")
        page.press("#query", "Enter")
        shown.until("document.querySelectorAll('.hit').length === 60")
        shown.shown(".hit")
        texts = page.evaluate("[...document.querySelectorAll('.hit .text')].map(each => each.textContent)")
        assert sorted(texts) == sorted(DOCUMENTS)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.locator(".hit .facts button").first.click()
        shown.shown("#search-out > *")
        page.fill("#where", "")
        page.press("#query", "Enter")
        shown.shown(".hit .chip.like").first.click()
        shown.shown("#liked .chip")
        unharmed(shown)


def test_comparing_and_keywords_show_them_as_they_are(hostile: Running, open_page: Opener) -> None:
    with open_page(hostile) as shown:
        shown.go("compare")
        some = [text.replace("\u2028", " ") for text in DOCUMENTS[:30]]
        shown.page.fill("#compare-texts", "\n".join(some))
        names = shown.submit("compare", "#compare-out .heat tbody th").all_inner_texts()
        assert names == [f"{number + 1}. {' '.join(text.split())}" for number, text in enumerate(some)]
        shown.page.locator("#compare-out tbody tr:nth-child(4) td:nth-child(3) button").click()
        shown.shown("#tokens-out .heat")
        shown.go("keywords")
        text = " ".join(DOCUMENTS).replace("\u2028", " ").replace("\u202e", " ")
        shown.page.fill("#keywords-text", text)
        assert shown.submit("keywords", ".highlighted").evaluate("each => each.textContent") == text
        unharmed(shown)


def test_groups_and_the_map_show_them_as_they_are(hostile: Running, open_page: Opener) -> None:
    with open_page(hostile) as shown:
        page = shown.page
        panel = shown.go("groups")
        for kind in ("topics", "clusters"):
            page.select_option("#groups-kind", kind)
            page.select_option("#groups-method", "kmeans")
            page.fill("#groups-number", "3")
            shown.submit("groups", ".group")
            page.evaluate("document.querySelectorAll('.group details').forEach(each => { each.open = true; })")
            shown.until("document.querySelector('.group details .texts')")
            assert any(text in DOCUMENTS for text in panel.locator(".texts li").all_text_contents())
        shown.go("map")
        canvas = shown.submit("map", "canvas#map")
        box = canvas.bounding_box()
        for step in range(30):
            page.mouse.move(box["x"] + box["width"] * (step + 1) / 31, box["y"] + box["height"] * (0.3 + 0.4 * (step % 3) / 2))
        unharmed(shown)


def test_files_and_errors_show_them_as_they_are(hostile: Running, open_page: Opener, tmp_path: Path) -> None:
    file = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in DOCUMENTS), encoding="utf-8")
    with open_page(hostile) as shown:
        page = shown.page
        shown.go("upload")
        page.set_input_files("#upload-file", file)
        assert page.locator("#upload-chosen").inner_text() == file.name
        page.fill("#upload-name", DOCUMENTS[3])
        assert "name" in shown.submit("upload", ".problem").inner_text()
        shown.go("groups").locator("[value=own]").check()
        page.set_input_files("#groups-form input[type=file]", file)
        shown.until("document.querySelector('#groups-form [role=status]').textContent.includes('onerror')")
        page.click("#tab-search")
        page.fill("#query", "x")
        page.fill("#where", DOCUMENTS[3])
        page.press("#where", "Enter")
        shown.shown("#search-out .problem")
        unharmed(shown)
