"""Keeping layers: the kept ones compute what they computed before, in every family."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import TEXTS

from munjang.errors import UsageError
from munjang.models.compress.parts import keep_layers, spread_layers
from munjang.models.sentence_encoder import SentenceEncoder

FAMILIES = ("bert", "electra", "roberta", "xlm-roberta", "distilbert", "mpnet")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_layer_alone_gives_the_first_layers_output(family: str, tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_folder(family)
    keep_layers(folder, tmp_path / "small", layers=[0])
    before, after = SentenceEncoder.load(folder), SentenceEncoder.load(tmp_path / "small")
    ids = before.tokenizer.encode(["the rain is in the river"])[0]
    assert after.engine.layers == 1
    np.testing.assert_allclose(after.engine.layer_outputs(ids)[-1], before.engine.layer_outputs(ids)[-2], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_gives_the_same_vectors_with_the_last_layer_alone(
    family: str, tiny_folder: Callable[..., Path], tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    keep_layers(tiny_folder(family), tmp_path / "small", layers=[1])
    texts = [text for text in TEXTS if text]
    ours = SentenceEncoder.load(tmp_path / "small").encode_with_report(texts).vectors
    np.testing.assert_allclose(ours, authority(tmp_path / "small", texts), atol=1e-5)


def test_all_layers_change_nothing(tiny_bert_folder: Path, tmp_path: Path) -> None:
    keep_layers(tiny_bert_folder, tmp_path / "same", layers=[0, 1])
    before, after = (SentenceEncoder.load(path).encode(TEXTS[:4]) for path in (tiny_bert_folder, tmp_path / "same"))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("layers", [[], [1, 0], [0, 0], [-1], [2]], ids=str)
def test_layers_that_are_not_there_or_not_rising_are_refused(layers: list[int], tiny_bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the model has 2 layers"):
        keep_layers(tiny_bert_folder, tmp_path / "small", layers=layers)


def test_the_configuration_says_how_many_are_left(tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    keep_layers(tiny_folder("distilbert"), tmp_path / "small", layers=[1])
    assert json.loads((tmp_path / "small/config.json").read_text(encoding="utf-8"))["n_layers"] == 1


@pytest.mark.parametrize(("count", "wanted"), [(12, 1), (12, 6), (12, 12), (6, 5)])
def test_spread_layers_rise_and_end_with_the_last(count: int, wanted: int) -> None:
    layers = spread_layers(count, wanted)
    assert len(set(layers)) == wanted
    assert layers == sorted(layers)
    assert layers[-1] == count - 1


def test_more_layers_than_there_are_cannot_be_spread() -> None:
    with pytest.raises(UsageError, match="13 layers of 12"):
        spread_layers(12, 13)
