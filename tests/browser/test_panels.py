"""Every panel in both languages: what a reader does, and what must appear."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.browser.conftest import Opener
from tests.serve.conftest import LIMITS, Running, running

from munjang import SentenceEncoder, fit_classifier
from munjang.analyze.classify.classifier import HeldOut
from munjang.serve.settings import ServerSettings

LANGUAGES = pytest.mark.parametrize("language", ["ko", "en"])
WORDS = ("rain", "snow", "cat", "dog", "train", "book")
TEXTS = "\n".join(f"{what} {number}" for what in ("the rain in winter", "the cat was sleeping", "coffee and a book") for number in range(4))


@LANGUAGES
def test_the_page_opens_on_the_sample_collection_in_the_browsers_language(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        assert shown.page.locator("html").get_attribute("lang") == language
        assert shown.page.locator("h1:visible").inner_text() == shown.words("search.title")
        assert shown.page.locator("#query").input_value() == shown.words("search.example.1")
        assert shown.page.locator(".hit").count() == 10
        assert shown.words("sample") in shown.page.locator("#search-library option").inner_text()


def test_language_and_theme_are_switched_and_remembered(server: Running, open_page: Opener) -> None:
    with open_page(server, "en") as shown:
        shown.page.click("[data-language=ko]")
        assert shown.page.locator("#tab-search").inner_text() == "검색"
        assert shown.page.locator(".hit summary").first.inner_text() == "왜 나왔나요?"
        before = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shown.page.click("#theme")
        assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
        shown.page.reload()
        shown.page.wait_for_selector("html[data-ready]")
        assert shown.page.locator("html").get_attribute("lang") == "ko"
        assert shown.page.locator("html").get_attribute("data-theme") == "dark"


@LANGUAGES
def test_search_filters_joins_words_reranks_and_says_why(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        page = shown.page
        page.fill("#query", "비가 온다")
        page.select_option("#count", "5")
        page.fill("#where", "subject = 'weather' and language = 'ko'")
        page.press("#where", "Enter")
        shown.until("document.querySelectorAll('.hit').length === 5")
        shown.shown(".hit")
        assert all(each.startswith("weather-ko") for each in page.locator(".hit .id").all_inner_texts())
        page.select_option("#by", "meaning")
        shown.shown(".hit")
        page.select_option("#by", "")
        shown.shown(".hit")
        page.check("#rerank")
        shown.until("document.querySelector('.hit dl')?.children.length === 8")  # one line more: the order is the cross-encoder's
        shown.shown(".hit")
        page.click(".hit:nth-child(1) summary")
        why = page.locator(".hit:nth-child(1) dl").inner_text()
        assert shown.words("why.cosine") in why
        assert shown.words("why.words") in why


@LANGUAGES
def test_documents_steer_the_search_and_facts_narrow_it(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        page = shown.page
        first = page.locator(".hit .id").nth(1).inner_text()
        page.click(".hit:nth-child(2) .chip.like")
        assert first in shown.shown("#liked .chip.like").inner_text()
        assert first not in page.locator(".hit .id").all_inner_texts() or page.locator(".hit [aria-pressed=true]").count() == 1
        page.click(".hit:nth-child(1) .chip.unlike")
        shown.shown("#liked .chip.unlike")
        page.fill("#query", "")
        page.press("#query", "Enter")
        shown.shown(".hit")
        page.click(".hit:nth-child(1) .facts button:nth-child(2)")
        shown.until("document.querySelector('#where').value.startsWith('subject = ')")
        page.click("#liked .chip.unlike")
        shown.until("document.querySelectorAll('#liked .chip').length === 1")


@LANGUAGES
def test_sentences_are_compared_as_a_whole_token_by_token_and_from_inside(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        shown.go("compare")
        shown.page.fill("#compare-texts", "the cat was sleeping\nthe dog was sleeping\n\n비가 온다")
        table = shown.submit("compare", "#compare-out .heat")
        assert table.locator("tbody td").all_inner_texts()[0] == "1.00"
        assert table.locator("tbody td").count() == 9
        table.locator("tbody tr:nth-child(1) td:nth-child(3) button").click()
        tokens = shown.shown("#tokens-out .heat")
        assert "sleep" in tokens.locator("tbody th").all_inner_texts()
        assert shown.page.locator("#tokens-out h2").inner_text() == shown.words("compare.tokens")
        table.locator("tbody tr:nth-child(3) th button").click()
        inside = shown.shown("#tokens-out .plain").first
        assert "[CLS]" in inside.inner_text()


@LANGUAGES
def test_keywords_are_marked_where_they_stand(server: Running, open_page: Opener, language: str) -> None:
    with open_page(server, language) as shown:
        shown.go("keywords")
        assert shown.page.locator("#keywords-text").input_value() == shown.words("keywords.example")
        text = "🌧 winter rain fell on the river; the river rose. 🌧 winter rain again"  # signs beyond 16 bits must not shift the marks
        shown.page.fill("#keywords-text", text)
        shown.page.fill("#keywords-top", "3")
        assert shown.submit("keywords", ".highlighted").inner_text() == text
        marks = shown.page.locator(".highlighted mark").all_inner_texts()
        chips = [each.split("\n")[0] for each in shown.page.locator(".keywords button").all_inner_texts()]
        assert len(chips) == 3
        assert all(any(mark in chip for chip in chips) for mark in marks)
        shown.page.locator(".keywords button").first.focus()
        assert shown.page.locator("mark.lit").first.inner_text() in chips[0]


@LANGUAGES
def test_topics_and_clusters_of_a_library_of_pasted_texts_and_of_a_file(
    server: Running, open_page: Opener, csv_file: Path, language: str
) -> None:
    with open_page(server, language) as shown:
        page, panel = shown.page, shown.go("groups")
        page.select_option("#groups-method", "kmeans")
        page.fill("#groups-number", "4")
        assert 1 <= shown.submit("groups", ".group").count() <= 4
        panel.locator(".group details summary").first.click()
        shown.until("document.querySelectorAll('.group details[open] .texts li').length > 3")
        page.select_option("#groups-kind", "clusters")
        panel.locator("[value=own]").check()
        page.fill("#groups-form textarea", TEXTS)
        page.fill("#groups-number", "3")
        page.click("#groups-form button.main")
        shown.until("document.querySelectorAll('.group').length === 3")
        panel.locator("input[type=file]").set_input_files(csv_file)
        shown.until("document.querySelector('#groups-form textarea').value.split('\\n').length === 40")
        assert page.locator("#groups-form textarea").input_value().startswith("the cat was on train 0\n")


@LANGUAGES
def test_texts_are_labelled_by_names_and_by_examples_and_downloaded(
    server: Running, open_page: Opener, tmp_path: Path, language: str
) -> None:
    examples = tmp_path / "examples.csv"
    rows = [
        f"the {word} is on the river,{label}" for label, words in (("animal", "cat dog"), ("thing", "book train")) for word in words.split()
    ]
    examples.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    with open_page(server, language, width=390) as shown:
        page, panel = shown.page, shown.go("labels")
        assert page.locator("#labels-names").input_value() == shown.words("labels.example")
        page.fill("#labels-names", "only one")
        shown.submit("labels", ".problem")
        page.fill("#labels-names", "rain, <b>winter</b>")
        assert sorted(shown.submit("labels", ".bars .name").all_inner_texts()) == ["<b>winter</b>", "rain"]
        panel.locator("[value=own]").check()
        page.fill("#labels-form textarea", "the cat\n=SUM(1)\nthe book " + "and the river " * 30)
        page.locator("#labels-file").set_input_files(examples)
        shown.shown("#labels-examples p")
        page.click("#labels-form button.main")
        shown.until("document.querySelectorAll('#labels-out tbody tr').length === 3")
        assert sorted(page.locator("#labels-out .bars .name").all_inner_texts()) == ["animal", "thing"]
        assert shown.words("labels.summary.names") not in page.locator("#labels-out [role=status]").inner_text()
        widths = page.locator("#labels-out .bars .gauge").evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
        assert max(widths) - min(widths) < 1  # bars are compared by their length
        page.set_viewport_size({"width": 1280, "height": 900})
        ends = "row => [...row.cells].map(each => each.getBoundingClientRect().bottom)"
        bottoms = page.locator("#labels-out tbody tr").nth(2).evaluate(ends)
        assert max(bottoms) - min(bottoms) < 1  # the line under a row is one
        page.set_viewport_size({"width": 390, "height": 900})
        with page.expect_download() as started:
            page.click("#labels-download")
        lines = Path(started.value.path()).read_text(encoding="utf-8-sig").splitlines()
        assert lines[0] == '"text","label","probability","runner_up","runner_up_probability"'
        assert lines[2].startswith('"\'=SUM(1)"')
        page.click("#labels-forget")
        assert page.locator("#labels-names").is_enabled()
        assert page.locator("#labels-precision").is_disabled()  # names alone show none
        several = tmp_path / "several.jsonl"
        several.write_text(
            "\n".join(json.dumps({"text": row.split(",")[0], "label": [row.split(",")[1], "all"]}) for row in rows), encoding="utf-8"
        )
        page.locator("#labels-file").set_input_files(several)
        shown.until("document.querySelector('#labels-multi').checked")
        page.click("#labels-form button.main")
        shown.until("document.querySelectorAll('#labels-out .bars li').length >= 3")
        korean = tmp_path / "엑셀.csv"  # as Korean spreadsheets write it
        korean.write_text("글,분류\n비가 온다,날씨\n눈이 온다,날씨\n책을 읽는다,책\n", encoding="cp949")
        page.locator("#labels-file").set_input_files(korean)
        page.locator("#labels-multi").uncheck()
        page.click("#labels-form button.main")
        shown.until("[...document.querySelectorAll('#labels-out .bars .name')].some(each => each.textContent === '날씨')")


@pytest.mark.parametrize(("language", "width", "theme"), [("ko", 390, "dark"), ("en", 1280, "light")])
def test_a_served_classifier_labels_and_abstains(
    model: SentenceEncoder, open_page: Opener, tmp_path: Path, language: str, width: int, theme: str
) -> None:
    texts = [f"the {word} is on the {other}" for word in WORDS for other in WORDS if word != other]
    made = fit_classifier(texts, ["animal" if "cat" in text or "dog" in text else "thing" for text in texts], model, strength=10.0)
    rows, right, sure = np.arange(60), np.zeros(60, dtype=np.int64), np.linspace(0, 1, 60, dtype=np.float32)
    made = replace(made, held_out=HeldOut(rows, right, (rows < 10).astype(np.int64), sure, sure))  # the ten least sure answers were wrong
    settings = ServerSettings(data=tmp_path, analyser="bigrams", limits=LIMITS)
    with running(settings, model, classifiers={"kinds": made}) as server, open_page(server, language, width=width, theme=theme) as shown:
        page, panel = shown.page, shown.go("labels")
        page.select_option("#labels-classifier", "kinds")
        assert page.locator("#labels-names").is_disabled()
        assert page.locator("#labels-file").is_disabled()
        panel.locator("[value=own]").check()
        page.fill("#labels-form textarea", "the cat\nthe book\nthe train is on the river")
        shown.submit("labels", "tbody tr")
        assert set(page.locator("#labels-out .label").all_inner_texts()) <= {"animal", "thing"}
        boxes = [page.locator(f"#labels-out tbody tr >> nth={row} >> .label").bounding_box() for row in range(3)]
        assert all(box["width"] > box["height"] for box in boxes)  # no letter below another
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.fill("#labels-precision", "0.999")
        shown.submit("labels", ".problem")  # more than the examples can show
        page.fill("#labels-precision", "0.8")
        shown.submit("labels", "tbody tr")
        assert page.locator("#labels-out [role=status]").inner_text().count("%") >= 2


@LANGUAGES
@pytest.mark.parametrize("colour", ["clusters", "topics"])
def test_the_map_is_drawn_searched_and_pointed_at(server: Running, open_page: Opener, language: str, colour: str) -> None:
    with open_page(server, language) as shown:
        page = shown.page
        shown.go("map")
        page.select_option("#map-colour", colour)
        page.fill("#map-number", "5")
        canvas = shown.submit("map", "canvas#map")
        assert 1 <= page.locator("#legend button").count() <= 6
        page.fill("#seek", "비")
        shown.until("document.querySelector('#found').textContent.includes('/ 240')")
        page.fill("#seek", "")
        box = canvas.bounding_box()
        for step in range(400):  # some dot lies on the way
            page.mouse.move(box["x"] + box["width"] * (step % 40 + 1) / 41, box["y"] + box["height"] * (step // 40 + 1) / 11)
            if page.locator("#tip").is_visible():
                break
        assert "-" in page.locator("#tip b").inner_text()
        inked = "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((v, i) => i % 4 === 3 && v).length"
        assert canvas.evaluate(inked) > 500


@LANGUAGES
def test_a_file_becomes_a_library_that_can_be_searched_and_deleted(
    server: Running, open_page: Opener, csv_file: Path, language: str
) -> None:
    with open_page(server, language) as shown:
        page = shown.page
        shown.go("upload")
        page.set_input_files("#upload-file", csv_file)
        assert page.locator("#upload-name").input_value() == "our-trains"
        done = shown.submit("upload", ".fine").inner_text()
        assert "40" in done
        assert "our-trains" in done
        page.click("#upload-out button.main")
        page.fill("#query", "train 7")
        page.fill("#where", "kind = 'pets'")
        page.press("#query", "Enter")
        assert "the cat was on train" in shown.shown(".hit .text").first.inner_text()
        shown.go("upload")
        delete = page.locator(".libraries .chip", has_text=shown.words("upload.delete"))
        delete.click()
        page.locator(".libraries .danger").click()
        shown.until("!document.querySelector('.libraries').textContent.includes('our-trains')")
