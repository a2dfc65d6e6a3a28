"""Texts are tokenised as offline; long ones a slice at a time, with the same ids and counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang import SentenceEncoder
from munjang.serve import prepare
from munjang.serve.prepare import prepare_texts


@pytest.mark.parametrize("side", ["left", "right"])
def test_slices_change_nothing(model: SentenceEncoder, side: prepare.Side, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the rain is in the river " * 40, "cat", "", "winter snow " * 9, "the cat is sleeping " * 70]
    expected = prepare_texts(model, texts, side=side)
    monkeypatch.setattr(prepare, "SLICE", 100)
    assert prepare_texts(model, texts, side=side) == expected
    assert expected.truncated == [0, 4]


def test_only_what_is_kept_of_a_long_text_is_held(model: SentenceEncoder) -> None:
    found = prepare_texts(model, ["rain " * 200_000])
    assert found.tokens == 200_002
    assert model.max_length is not None
    assert [len(ids) for ids in found.ids] == [model.max_length]


@given(st.text(alphabet="ab \n", max_size=400))
def test_slices_are_the_text_and_none_is_too_long(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "SLICE", 20)
        slices = prepare._sliced(text)
    assert "".join(slices) == text
    assert all(len(part) <= 20 for part in slices)


@given(st.lists(st.text(alphabet="a", max_size=40), max_size=20))
def test_groups_are_the_texts_in_order(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "SLICE", 20)
        groups = list(prepare._groups(texts))
    assert [text for group in groups for text in group] == texts
    assert all(len(group) == 1 or sum(map(len, group)) <= 20 for group in groups)
