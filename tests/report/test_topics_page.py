from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.report.topics_page import (
    GAP,
    JoinView,
    SlicesView,
    TopicView,
    _compute_radii,
    _push_apart,
    _spread_out,
    bubble_map,
    columns,
    shorten_label,
    topics_page,
)

HOSTILE = "<script>alert('선거')</script>"


def views(count: int) -> list[TopicView]:
    return [
        TopicView(
            number,
            f"{HOSTILE} {number}",
            [(HOSTILE, 0.5), ("투표", 0.25)],
            40 - number,
            [HOSTILE],
            0.1,
            (math.cos(number), math.sin(number)),
        )
        for number in range(count)
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


def test_the_page_is_whole_and_escapes_every_text() -> None:
    joins = [JoinView(0, 1, 0.2), JoinView(2, 3, 0.5)]
    slices = SlicesView(["2023", HOSTILE], [[1, 2, 3], [3, 2, 1]])
    written = topics_page(HOSTILE, views(3), facts=[("a", HOSTILE)], joins=joins, over_time=slices, per_class=slices)
    tags = Tags()
    tags.feed(written)
    assert "script" not in tags.seen
    assert {"svg", "article", "blockquote", "table"} <= tags.seen
    assert "http:" not in written.replace("http-equiv", "")
    assert "투표" in written


def test_no_topic_and_one_topic_make_a_page() -> None:
    assert "Map" not in topics_page("none", [])
    assert "Map" in topics_page("one", views(1))


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=25))
def test_bubbles_do_not_overlap(drawn: list[tuple[int, float, float]]) -> None:
    radii = _compute_radii([size for size, _, _ in drawn])
    places = _push_apart(_spread_out([(x, y) for _, x, y in drawn]), radii)
    for a in range(len(places)):
        for b in range(a):
            assert math.dist(places[a], places[b]) >= radii[a] + radii[b] + GAP - 3


def test_every_bubble_is_inside_the_map() -> None:
    written = bubble_map(views(12))
    left, top, width, height = map(float, re.search(r'viewBox="([^"]+)"', written).group(1).split())
    for x, y, r in re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)" r="([\d.]+)"', written):
        assert left <= float(x) - float(r)
        assert float(x) + float(r) <= left + width
        assert top <= float(y) - float(r)
        assert float(y) + float(r) <= top + height


@given(st.text("가나ab ", max_size=30), st.integers(2, 20))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert sum(map(columns, shorten_label(text, width).replace("…", "."))) <= width


def test_bubbles_that_cannot_be_parted_in_time_are_drawn_where_they_got_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.report.topics_page._ROUNDS", 1)
    crowded = [(0.0, 0.0)] * 30
    radii = _compute_radii([10] * 30)
    places = _push_apart(_spread_out(crowded), radii)
    assert len({(round(x, 3), round(y, 3)) for x, y in places}) == 30
    assert all(math.isfinite(value) for place in places for value in place)
    assert bubble_map(views(30)).count('<g class="bubble">') == 30
