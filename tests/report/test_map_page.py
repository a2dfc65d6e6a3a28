"""The map's page: self-contained, its script the only one that may run, texts only as data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.report.analysis_pages import Marked, drop_overlaps, keywords_page
from munjang.report.text_map import MAX_COLOURS, MAX_TEXT, MapPoint, map_page

BAD = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


def data_of(html: str) -> dict:
    found = re.search(r'<script type="application/json" id="map-data">(.*?)</script>', html, flags=re.DOTALL)
    assert found
    return json.loads(found.group(1))


def drawn(points: list[MapPoint]) -> str:
    places = np.linspace(0, 1, 2 * len(points), dtype=np.float32).reshape(-1, 2)
    return map_page(places, points, title="Map & more", lead="lead")


def test_only_the_pages_own_script_may_run():
    html = drawn([MapPoint("a", BAD, BAD)])
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html
    assert "alert(1)</script>" not in html
    assert "<img" not in html
    assert data_of(html)["texts"] == [BAD]


def test_nothing_is_loaded_from_elsewhere():
    html = drawn([MapPoint("a", "text", "group")])
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|https?://", html)


def test_the_largest_groups_have_colours_and_the_rest_is_grey():
    points = [MapPoint(str(n), "t", f"group {n % 30}") for n in range(60)] + [MapPoint("x", "t", None)]
    found = data_of(drawn(points))
    assert len(found["groups"]) == MAX_COLOURS + 2
    assert [group["name"] for group in found["groups"][-2:]] == ["others", "none"]
    assert found["groups"][-1]["colour"] == [0, 0]
    assert found["group"][-1] == MAX_COLOURS + 1
    assert len({tuple(group["colour"]) for group in found["groups"][:MAX_COLOURS]}) == MAX_COLOURS


def test_long_texts_are_cut_and_lone_surrogates_fit_in_a_file():
    html = drawn([MapPoint("a", "가" * 1_000, "g"), MapPoint("b", "\ud800", "g")])
    html.encode()
    assert len(data_of(html)["texts"][0]) == MAX_TEXT


def test_no_points_and_wrong_places():
    assert data_of(drawn([]))["x"] == []
    with pytest.raises(UsageError, match="two numbers"):
        map_page(np.zeros((1, 3), np.float32), [MapPoint("a", "t", None)], title="", lead="")


def test_keywords_are_marked_where_they_stand():
    each = Marked("1", "비 <b>rain</b> rain", [("rain", 0.5)], [(5, 9, 0.5), (14, 18, 0.5)])
    html = keywords_page([each, Marked("2", "", [], [])])
    assert "비 &lt;b&gt;<mark" in html
    assert html.count("rain</mark>") == 2
    assert "no keywords" in html


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda p: (p[0], p[0] + p[1], 0.5)), max_size=12))
def test_marks_never_overlap_and_the_longest_stays(places):
    kept = drop_overlaps(places)
    assert all(a[1] <= b[0] for a, b in pairwise(kept))
    assert set(kept) <= set(places)
    if places:
        assert max(end - start for start, end, _ in kept) == max(end - start for start, end, _ in places)
