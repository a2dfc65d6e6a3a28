from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.report.heatmap import Scale, choose_colour, choose_ink, choose_scale, count_columns, heatmap_svg, shorten


def lightness(parts: tuple[int, int, int]) -> float:
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]


@given(names=st.lists(st.text(max_size=60), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_any_names_make_a_well_formed_picture(names: list[str], seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(len(names), 2))
    root = ET.fromstring(heatmap_svg(values, names, ["비가", "<온다>"], title="x"))
    assert len(root.findall(".//{*}rect")) == values.size


def test_a_cell_says_its_row_column_and_number() -> None:
    svg = heatmap_svg(np.array([[0.25]]), ["비"], ["rain"], title="x")
    assert "<title>비 · rain: 0.250</title>" in svg


@given(a=st.floats(0, 1), b=st.floats(0, 1))
def test_deeper_is_darker(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert lightness(choose_colour(low)) >= lightness(choose_colour(high)) - 1  # rounding to whole colours


@given(share=st.floats(0, 1))
def test_ink_is_readable_on_every_colour(share: float) -> None:
    background = choose_colour(share)
    assert abs(lightness(background) - lightness(choose_ink(background))) > 95


def test_scales() -> None:
    assert choose_scale(np.array([[-0.5, 0.2]])) == Scale(-0.5, 0.2)
    assert choose_scale(np.zeros((0, 0))).share(1) == 0
    assert Scale(0, 2).share(9) == 1


@given(text=st.text(), limit=st.integers(1, 30))
def test_a_shortened_name_fits(text: str, limit: int) -> None:
    assert count_columns(shorten(text, limit)) <= limit


def test_wrong_or_huge_matrices_are_refused() -> None:
    with pytest.raises(UsageError, match="1 row and 2 columns"):
        heatmap_svg(np.zeros((1, 1)), ["a"], ["b", "c"], title="x")
    with pytest.raises(UsageError, match="too many"):
        heatmap_svg(np.zeros((300, 300)), ["a"] * 300, ["b"] * 300, title="x")
