"""Texts are tokenised as offline; long ones a slice at a time, with the same ids and counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import write_json
from tests.static_model import write_static

from munjang import SentenceEncoder
from munjang.serve import prepare
from munjang.serve.prepare import Cutting, prepare_ids, prepare_texts


@pytest.mark.parametrize("side", ["left", "right"])
def test_slices_change_nothing(model: SentenceEncoder, side: prepare.Side, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the rain is in the river " * 40, "cat", "", "winter snow " * 9, "the cat is sleeping " * 70]
    expected = prepare_texts(model, texts, Cutting(side))
    monkeypatch.setattr(prepare, "SLICE", 100)
    assert prepare_texts(model, texts, Cutting(side)) == expected
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
        slices = prepare._slice(text)
    assert "".join(slices) == text
    assert all(len(part) <= 20 for part in slices)


@given(st.lists(st.text(alphabet="a", max_size=40), max_size=20))
def test_groups_are_the_texts_in_order(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "SLICE", 20)
        groups = list(prepare._groups(texts))
    assert [text for group in groups for text in group] == texts
    assert all(len(group) == 1 or sum(map(len, group)) <= 20 for group in groups)


def test_a_model_without_layers_takes_its_ids_as_they_are_and_is_cut_at_either_side(tmp_path: Path) -> None:
    static = SentenceEncoder.load(write_static(tmp_path, max_length=8), max_length=4)
    words = static.tokenizer.encode_plain(["the rain is in the river"])
    assert prepare_ids(static, words, Cutting("right")).ids == [words[0][:4]]
    found = prepare_ids(static, [*words, [5]], Cutting("left"))
    assert found.ids == [words[0][-4:], [5]]
    assert (found.tokens, found.truncated) == (7, [0])
    assert prepare_texts(static, ["the rain is in the river"], Cutting("right")).ids == [words[0][:4]]


def test_a_model_of_small_letters_sees_small_letters(tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert_folder, tmp_path / "lower")
    settings = json.loads((folder / "sentence_bert_config.json").read_text())
    write_json(folder / "sentence_bert_config.json", settings | {"do_lower_case": True})
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False  # so that it is the model that lowers them
    write_json(folder / "tokenizer.json", tokenizer)
    model = SentenceEncoder.load(folder)
    assert prepare_texts(model, ["The RAIN"]).ids == prepare_texts(model, ["the rain"]).ids
    assert prepare_texts(SentenceEncoder.load(tiny_bert_folder), ["the rain"]).ids == prepare_texts(model, ["the rain"]).ids
