"""Passages: they cover the text, overlap, and end where a sentence does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.library.passages import split_passages


@given(st.text("ab. \n가", max_size=400), st.integers(4, 60), st.integers(0, 30))
def test_passages_cover_every_character_and_fit(text, characters, overlap):
    overlap = min(overlap, characters // 2)
    found = split_passages(text, characters=characters, overlap=overlap)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    for (start, stop), (following, end) in pairwise(found):
        assert start < following <= stop < end
        assert following >= stop - overlap
    assert all(stop - start <= characters for start, stop in found)


def test_a_text_that_fits_is_one_passage():
    assert split_passages("short", characters=100, overlap=20) == [(0, 5)]
    assert split_passages("", characters=100, overlap=20) == [(0, 0)]


def test_a_passage_ends_behind_a_sentence_and_begins_with_a_word():
    text = "The first sentence is here. The second one follows it. And a third one ends the text."
    pieces = [text[start:stop] for start, stop in split_passages(text, characters=60, overlap=30)]
    assert pieces[0].rstrip().endswith("it.")
    assert pieces[1].startswith(("second", "one", "follows", "The"))


def test_an_overlap_beyond_half_is_refused():
    with pytest.raises(UsageError):
        split_passages("text", characters=10, overlap=6)
