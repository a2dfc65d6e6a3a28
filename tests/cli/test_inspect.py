from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def test_one_sentence_shows_tokens_layers_and_vector(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    outcome = munjang("inspect", "the rain", "--model", tiny_bert_folder)
    assert outcome.code == 0, outcome.err
    for word in ("[CLS]", "the", "rain", "[SEP]", "embeddings", "layer 1", "pooling (mean)", "normalize", "32 numbers, norm 1.0000"):
        assert word in outcome.out


def test_json_holds_what_the_tables_show(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    found = munjang("inspect", "the rain", "--json", "--model", tiny_bert_folder).json
    assert [token["text"] for token in found["tokens"]] == ["[CLS]", "the", "rain", "[SEP]"]
    assert (found["tokens"][2]["start"], found["tokens"][2]["end"]) == (4, 8)
    assert found["layers"][0]["shape"] == [4, 32]


def test_two_sentences_show_a_heat_map(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    outcome = munjang("inspect", "the rain", "snow in winter", "--model", tiny_bert_folder)
    assert outcome.code == 0, outcome.err
    assert "add up to" in outcome.out
    found = munjang("inspect", "the rain", "snow in winter", "--json", "--model", tiny_bert_folder).json
    assert np.sum(found["contribution"]) == pytest.approx(found["score"], abs=1e-5)
    assert np.shape(found["cosine"]) == (4, 5)


def test_the_page_is_whole_and_loads_nothing(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "i.html"
    for words in (("<script>alert(1)</script> 비가",), ("the <b>rain", "비가 온다")):
        assert munjang("inspect", *words, "-o", target, "--model", tiny_bert_folder).code == 0
        html = target.read_text(encoding="utf-8")
        assert "<script" not in html
        assert "<b>" not in html
        assert "src=" not in html
        assert "href=" not in html
        HTMLParser().feed(html)


def test_a_wrong_output_is_refused(munjang: Callable[..., Any]) -> None:
    assert munjang("inspect", "a", "-o", "x.txt").code == 2


def test_a_cut_text_is_noted(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    assert "only the beginning is shown" in munjang("inspect", "sleep " * 100, "--model", tiny_bert_folder).err
