import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.models.long_text import split_windows


@st.composite
def cuts(draw):
    size = draw(st.integers(1, 12))
    return draw(st.integers(0, 60)), size, draw(st.integers(1, size))


@given(cuts())
def test_windows_cover_every_token_in_order(cut):
    count, size, stride = cut
    cutting = split_windows(range(count), size=size, stride=stride)
    assert sorted({number for window in cutting for number in window}) == list(range(count))
    assert all(window == list(range(window[0], window[0] + len(window))) for window in cutting if window)


@given(cuts())
def test_no_window_is_larger_than_the_size_and_all_but_the_last_are_full(cut):
    count, size, stride = cut
    cutting = split_windows(range(count), size=size, stride=stride)
    assert all(len(window) == size for window in cutting[:-1])
    assert len(cutting[-1]) <= size


@given(cuts())
def test_neighbours_overlap_by_size_less_stride_and_each_brings_something_new(cut):
    count, size, stride = cut
    cutting = split_windows(range(count), size=size, stride=stride)
    for before, after in itertools.pairwise(cutting):
        assert len(set(before) & set(after)) == size - stride
        assert set(after) - set(before)


def test_a_text_that_fits_is_one_window_and_an_empty_one_too():
    assert split_windows([1, 2, 3], size=3, stride=1) == [[1, 2, 3]]
    assert split_windows([], size=3, stride=1) == [[]]


@pytest.mark.parametrize(("size", "stride"), [(0, 1), (3, 0), (3, 4)])
def test_impossible_windows_are_refused(size, stride):
    with pytest.raises(UsageError, match="stride"):
        split_windows([1], size=size, stride=stride)
