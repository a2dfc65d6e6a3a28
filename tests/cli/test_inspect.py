from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import Dense
from tests.static_model import write_static


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


def test_standard_input_is_one_sentence_only(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    outcome = munjang("inspect", "-", "-", "--model", tiny_bert_folder, stdin="the rain")
    assert outcome.code == 2
    assert '"-" can stand for one of the two sentences, not for both' in outcome.err


def test_a_model_that_is_no_weighted_sum_shows_best_partners(
    munjang: Callable[..., Any], tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    model = tiny_folder(pooling=("max",), modules=(Dense(16), "layernorm", "normalize"))
    words = ("the rain", "rain in winter", "--model", model)
    shown = munjang("inspect", *words)
    assert shown.code == 0, shown.err
    assert "the score cannot be split exactly; best partners are shown" in " ".join(shown.out.split())
    found = munjang("inspect", *words, "--json").json
    assert found["contribution"] is None
    assert np.shape(found["cosine"]) == (4, 5)
    target = tmp_path / "i.html"
    assert munjang("inspect", *words, "-o", target).code == 0
    page = target.read_text(encoding="utf-8")
    assert "Cosine of every token with every token" in page
    assert "What every pair adds to the score" not in page


def test_every_module_behind_the_pooling_is_shown(munjang: Callable[..., Any], tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    model = tiny_folder(pooling=("max",), modules=(Dense(16), "layernorm", "normalize"))
    layers = munjang("inspect", "the rain", "--model", model, "--json").json["layers"]
    assert [(layer["name"], layer["shape"]) for layer in layers[-4:]] == [
        ("pooling (max)", [32]),
        ("dense (tanh)", [16]),
        ("layer norm", [16]),
        ("normalize", [16]),
    ]
    static = munjang("inspect", "the rain", "--model", write_static(tmp_path / "static"), "--json").json
    assert [token["text"] for token in static["tokens"]] == ["the", "rain"]
    assert [(layer["name"], layer["shape"]) for layer in static["layers"]] == [("token vectors", [2, 16]), ("pooling (mean)", [16])]


def test_two_sentences_are_called_similar_only_as_people_would(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "two.html"
    assert munjang("inspect", "비가 온다", "주가가 폭락했다").out.splitlines()[0] == "score 0.5311 (not similar)"
    assert munjang("inspect", "비가 온다", "주가가 폭락했다", "-o", page).code == 0
    assert "score 0.5311 (not similar)" in page.read_text(encoding="utf-8")
    measured = munjang("inspect", "the rain", "the sun", "--model", tiny_bert_folder).out.splitlines()[0]
    assert measured.startswith("score ")
    assert "(" not in measured
