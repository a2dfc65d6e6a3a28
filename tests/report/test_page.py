from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from munjang.report.page import escape, page, section, table, text

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
