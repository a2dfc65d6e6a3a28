from __future__ import annotations

import math
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from munjang.report.page import Bars, Line, escape, histogram, line_chart, page, section, table, text

VOID = {"meta", "br", "hr", "img"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@given(words=st.text())
def test_no_text_can_become_markup(words: str) -> None:
    reader = read(page(words, [section(words, table([words], [[words]]) + text(words))], lead=words, footer=words))
    assert reader.open == []
    assert reader.tags <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "section",
        "footer",
        *["table", "thead", "tbody", "tr", "th", "td"],
    }


def test_a_page_forbids_everything_from_outside() -> None:
    html = page("제목", ["<p>x</p>"])
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html
    assert "Malgun Gothic" in html
    assert "http" not in html.replace("http-equiv", "")


def test_control_characters_and_surrogates_are_replaced() -> None:
    assert escape("a\x1b\ud800b") == "a\ufffd\ufffdb"


def test_numbers_stand_to_the_right() -> None:
    html = table(["a", "b", "c"], [["x", 1234, 0.5]], numbers=["a"])
    assert '<td class="number">x</td><td class="number">1,234</td><td class="number">0.5000</td>' in html


NUMBERS = st.lists(st.floats(-1e6, 1e6), max_size=50)


@given(NUMBERS)
def test_a_line_chart_is_well_formed_and_stays_in_its_box(values: list[float]) -> None:
    drawn = line_chart([Line("a < b", list(range(len(values))), values)], title="t & u", x_title="step", y_title="loss")
    root = ElementTree.fromstring(drawn)
    for line in root.iter("polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 640
            assert 0 <= y <= 240


@given(st.lists(st.floats(-1, 1), max_size=50))
def test_a_histogram_is_well_formed(values: list[float]) -> None:
    ElementTree.fromstring(histogram([Bars("one", values), Bars("two", [])], title="t", x_title="cosine", bounds=(-1, 1)))


def test_what_is_not_finite_is_left_out_and_long_curves_are_thinned() -> None:
    values = [math.nan, math.inf, *map(float, range(5000))]
    drawn = line_chart([Line("a", list(range(len(values))), values)], title="t", x_title="x", y_title="y")
    assert "nan" not in drawn
    assert len(drawn) < 20_000


def test_both_axes_are_named_inside_the_picture() -> None:
    for drawn in (
        line_chart([Line("a", [0, 1], [0.5, 1])], title="t", x_title="step", y_title="share of pairs"),
        histogram([Bars("a", [0.5])], title="t", x_title="step", bounds=(0, 1)),
    ):
        texts = {element.text: element.attrib for element in ElementTree.fromstring(drawn).iter("text")}
        assert 0 < float(texts["step"]["x"]) < 640
        assert 0 < float(texts["step"]["y"]) < 240
        # a text that is turned about its own place stays there
        x, y = texts["share of pairs"]["x"], texts["share of pairs"]["y"]
        assert texts["share of pairs"]["transform"] == f"rotate(-90 {x} {y})"
        assert 0 < float(x) < 72
        assert 0 < float(y) < 240
