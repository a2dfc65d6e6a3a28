from __future__ import annotations

import math
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from munjang.report.charts import Bars, Line, histogram, line_chart

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
