"""Weights and heads that do not fit their config: each is refused with its folder and what was expected; older spellings are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import TEXTS, Dense, write_cross_encoder, write_json
from tests.engine.test_parity_formats import encoded, static_folder
from tests.hostile.conftest import edit, rewrite, tensors_of

from munjang.engine.folder import read_folder
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.open import StaticEngine
from munjang.engine.session import open_session
from munjang.engine.transformer import TransformerEngine
from munjang.errors import FolderError
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.sentence_encoder import SentenceEncoder


def refused(folder: Path, words: str) -> None:
    with pytest.raises(FolderError, match=words):
        SentenceEncoder.load(folder)


@pytest.fixture
def copied(tiny_folder, tmp_path):
    def copy(family: str = "bert", **fields) -> Path:
        return Path(shutil.copytree(tiny_folder(family, **fields), tmp_path / family))

    return copy


def test_layer_norms_under_their_old_names_are_read(copied, tiny_folder):
    folder = copied()
    old = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
           for name, array in tensors_of(folder).items()}  # fmt: skip
    assert any("gamma" in name for name in old)
    rewrite(folder, old)
    assert np.array_equal(encoded(folder), encoded(tiny_folder("bert")))


def test_weights_of_something_else_are_refused(copied):
    folder = copied()
    rewrite(folder, {f"vision.{name}": array for name, array in tensors_of(folder).items()})
    refused(folder, r"bert: the weights hold no word embeddings of a bert encoder")


@pytest.mark.parametrize("shape", [(32, 3), (3, 4)], ids=["a column too few", "too few rows"])
def test_a_relative_bias_that_does_not_fit_the_heads_is_refused(copied, shape):
    folder = copied("mpnet")
    rewrite(folder, {**tensors_of(folder), "encoder.relative_attention_bias.weight": np.ones(shape, np.float32)})
    refused(folder, rf"mpnet: relative_attention_bias has shape \({shape[0]}, {shape[1]}\), expected one column per head")


def test_a_padding_beyond_all_positions_leaves_no_room_for_a_text(copied):
    folder = copied("roberta")
    edit(folder / "config.json", pad_token_id=500)
    refused(folder, r"roberta: 66 positions leave no room for a text")


@pytest.mark.parametrize(
    ("fields", "place", "name", "words"),
    [
        ({"modules": (Dense(16, residual=True),)}, "2_Dense", "residual.weight", r"expected residual.weight of shape \(16, 32\)"),
        ({"modules": ("layernorm",)}, "2_LayerNorm", "norm.weight", r"expected norm.weight and norm.bias of shape \(32,\)"),
    ],
    ids=["a shortcut", "a layer norm"],
)
def test_a_module_with_a_tensor_of_another_shape_is_refused(copied, fields, place, name, words):
    folder = copied(**fields)
    rewrite(folder / place, {**tensors_of(folder / place), name: np.ones((5,), np.float32)})
    refused(folder, f"{place}: {words}")


def test_a_folder_that_names_its_dimension_names_it_again_when_saved(tiny_folder, tmp_path):
    model = SentenceEncoder.load(tiny_folder("bert", settings=json.dumps({"truncate_dim": 10})))
    model.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved/config_sentence_transformers.json").read_text())["truncate_dim"] == 10
    again = SentenceEncoder.load(tmp_path / "saved")
    assert again.dimension == 10
    assert np.array_equal(again.encode(TEXTS[:3]), model.encode(TEXTS[:3]))


@pytest.mark.parametrize(
    ("key", "more", "words"),
    [
        ("tables", None, "expected a tensor 'embedding.weight' or 'embeddings' of two dimensions"),
        ("embeddings", lambda size: {"mapping": np.full(size, size)}, "'mapping' points outside the embeddings"),
        ("embeddings", lambda size: {"mapping": np.full(size, -1)}, "'mapping' points outside the embeddings"),
        ("embeddings", lambda size: {"mapping": np.zeros((size, 1), np.int64)}, "'mapping' points outside the embeddings"),
        ("embeddings", lambda size: {"weights": np.ones(3)}, r"'weights' has shape \(3,\), expected \(\d+,\)"),
    ],
    ids=["no table", "beyond", "negative", "two dimensions", "weights"],
)
def test_a_static_embedding_that_does_not_fit_is_refused(tmp_path, key, more, words):
    refused(static_folder(tmp_path / "static", key=key, module=".", more=more), f"static: {words}")


def test_weights_without_a_mapping_scale_the_rows_of_a_static_embedding(tmp_path):
    plain = SentenceEncoder.load(static_folder(tmp_path / "plain", key="embeddings", module="."))
    twice = static_folder(tmp_path / "twice", key="embeddings", module=".", more=lambda size: {"weights": np.full(size, 2.0)})
    np.testing.assert_allclose(SentenceEncoder.load(twice).encode("the rain"), 2 * plain.encode("the rain"), rtol=1e-6)


def test_each_engine_refuses_the_other_kind_of_folder(tiny_bert_folder, tmp_path):
    with pytest.raises(FolderError, match="holds no static embedding"):
        StaticEngine(read_folder(tiny_bert_folder))
    with pytest.raises(FolderError, match="static: holds no transformer"):
        TransformerEngine(read_folder(static_folder(tmp_path / "static")), threads=1)


@pytest.fixture(scope="session")
def cross_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cross") / "cross"
    write_cross_encoder(folder, 2)
    return folder


def changed(cross_folder: Path, target: Path, **changes) -> Path:
    """Copy a cross-encoder and change its config; None takes a key away."""
    shutil.copytree(cross_folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    write_json(target / "config.json", {key: value for key, value in config.items() if value is not None})
    return target


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"architectures": ["GPT2ForSequenceClassification"]},
            "'GPT2ForSequenceClassification' is not a cross-encoder that runs here; known are BertFor",
        ),
        ({"id2label": None, "num_labels": 0}, "num_labels is '0', expected a positive whole number"),
        ({"id2label": None, "num_labels": "two"}, "num_labels is 'two', expected a positive whole number"),
        ({"id2label": {"first": "a"}}, "the keys of 'id2label' must be whole numbers"),
        ({"sbert_ce_default_activation_function": "os.system"}, "activation 'os.system' is not one that Munjang knows; no code is loaded"),
    ],
    ids=["architecture", "no labels", "labels", "label names", "activation"],
)
def test_a_cross_encoder_that_says_what_cannot_be_is_refused(cross_folder, tmp_path, changes, words):
    folder = changed(cross_folder, tmp_path / "changed", **changes)
    with pytest.raises(FolderError, match=f"changed: .*{words}"):
        CrossEncoder.load(folder)


def test_labels_without_names_are_numbered(cross_folder, tmp_path):
    plain = CrossEncoder.load(cross_folder)
    nameless = CrossEncoder.load(changed(cross_folder, tmp_path / "nameless", id2label=None, label2id=None, num_labels=2))
    assert nameless.labels == plain.labels == ("LABEL_0", "LABEL_1")
    pairs = [("rain", "the rain"), ("cat", "dog")]
    assert np.array_equal(nameless.predict(pairs), plain.predict(pairs))


def test_whoever_stops_listening_stops_the_work():
    builder = GraphBuilder()
    builder.name_output(builder.add("Add", ["x", "x"]), "y")
    session = open_session(builder, [("x", FLOAT, ["N"])], [("y", ["N"])], threads=1)
    fed = []

    def feeds():
        for number in range(1_000):
            fed.append(number)
            yield {"x": np.full(3, number, np.float32)}

    answers = session.run_many(feeds(), ["y"])
    assert [float(next(answers)[0][0]) for _ in range(3)] == [0, 2, 4]
    answers.close()
    assert len(fed) < 10
    assert [float(found[0][0]) for found in session.run_many(({"x": np.ones(1, np.float32)} for _ in range(2)), ["y"])] == [2, 2]
