"""Families that the fast engine does not know, through torch: the same objects, the authority's vectors, the same refusals."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import MAX_LENGTH, POSITIONS, TEXTS, WIDTH, Dense, Tiny, _write_legacy, quiet, randomise, write_json, write_tokenizer

from munjang.errors import DeviceError, FolderError, MissingExtra, UsageError
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.long_text import TruncationWarning
from munjang.models.sentence_encoder import SentenceEncoder

transformers = pytest.importorskip("transformers", reason="transformers, which makes the tiny models, is not installed")
pytest.importorskip("torch", reason="torch is not installed")

SHORT = [text for text in TEXTS if len(text) < 40]
PARITY = 1e-5
ALONE = 2e-5
"""How far a vector may move with what it is encoded with; the docstring of the engine states it."""


def make_config(family: str, vocabulary: int, **more: Any) -> Any:
    shared = {"vocab_size": vocabulary, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    shared |= {"max_position_embeddings": POSITIONS, "type_vocab_size": 2, "pad_token_id": 0, **more}
    return {
        "convbert": lambda: transformers.ConvBertConfig(**shared, embedding_size=24, conv_kernel_size=3),
        "roformer": lambda: transformers.RoFormerConfig(**shared, embedding_size=24),
    }[family]()


def build(folder: Path, family: str, *, kind: str = "AutoModel", **fields: Any) -> Path:
    with quiet():
        size = write_tokenizer(folder, "bert", MAX_LENGTH)
        more = {"num_labels": fields.pop("labels")} if "labels" in fields else {}
        model = getattr(transformers, kind).from_config(make_config(family, size, **more)).eval()
        randomise(model)
        model.save_pretrained(folder)
        if kind == "AutoModel":
            _write_legacy(folder, Tiny(family, **fields))
    return folder


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    made: dict[str, Path] = {}

    def make(family: str, **fields: Any) -> Path:
        key = repr((family, fields))
        if key not in made:
            made[key] = build(tmp_path_factory.mktemp(family) / "model", family, **fields)
        return made[key]

    return make


@pytest.mark.parametrize(
    ("family", "pooling", "modules"),
    [
        ("convbert", ("mean",), ("normalize",)),
        ("convbert", ("weightedmean",), (Dense(16), "layernorm")),
        ("roformer", ("cls",), ()),
        ("roformer", ("max", "lasttoken"), ("normalize",)),
    ],
)
def test_vectors_are_those_of_sentence_transformers(folder_of, authority, family, pooling, modules):
    folder = folder_of(family, pooling=pooling, modules=modules)
    model = SentenceEncoder.load(folder)
    assert (model.engine.placement.engine, model.device, model.compute) == ("torch", "cpu", "float32")
    # one text at a time: ConvBERT's convolutions see padding, so the authority's own vectors depend on what they are padded with
    expected = authority(folder, SHORT, batch_size=1)
    vectors = model.encode(SHORT)
    scale = np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1)
    assert float((np.abs(vectors - expected) / scale).max()) <= PARITY


@pytest.mark.parametrize("family", ["convbert", "roformer"])
def test_a_vector_does_not_depend_on_its_batch(folder_of, family):
    model = SentenceEncoder.load(folder_of(family))
    together = model.encode(SHORT * 3)[: len(SHORT)]
    alone = np.stack([model.encode(text) for text in SHORT])
    assert float(np.abs(together - alone).max()) <= ALONE


def test_long_texts_prompts_and_tokens_follow_the_same_rules(folder_of, authority):
    folder = folder_of("roformer", include_prompt=False, settings=json.dumps({"prompts": {"query": "the cat "}}))
    model = SentenceEncoder.load(folder)
    assert model.max_length == MAX_LENGTH
    with pytest.warns(TruncationWarning, match=f"1 of 1 text is longer than {MAX_LENGTH} tokens"):
        cut = model.encode(["sleep " * 60])
    np.testing.assert_allclose(cut, authority(folder, ["sleep " * 60]), atol=PARITY)
    expected = authority(folder, ["the rain"], prompt="the cat ")
    np.testing.assert_allclose(model.encode(["the rain"], prompt_name="query"), expected, atol=PARITY)
    [tokens] = model.encode_tokens(["the rain"])
    assert tokens.vectors.shape == (4, WIDTH)
    assert len(model.engine.layer_outputs(tokens.ids)) == model.engine.layers + 1


def test_what_is_saved_loads_in_sentence_transformers(folder_of, authority, tmp_path):
    model = SentenceEncoder.load(folder_of("roformer"))
    model.save(tmp_path / "saved")
    np.testing.assert_allclose(authority(tmp_path / "saved", SHORT[:2]), model.encode(SHORT[:2]), atol=PARITY)


@pytest.mark.parametrize(("family", "labels"), [("convbert", 1), ("roformer", 3)])
def test_a_cross_encoder_scores_as_sentence_transformers_does(tmp_path, family, labels):
    folder = build(tmp_path / "cross", family, kind="AutoModelForSequenceClassification", labels=labels)
    model = CrossEncoder.load(folder)
    assert model.engine.placement.engine == "torch"
    pairs = [("the rain", "비가 온다"), ("cat", "a dog was on the train"), ("snow", "winter")]
    with quiet():
        import sentence_transformers as st
        import torch

        theirs = st.CrossEncoder(str(folder), device="cpu", local_files_only=True)
        expected = np.concatenate([np.atleast_1d(theirs.predict([pair], activation_fn=torch.nn.Identity())) for pair in pairs])
    np.testing.assert_allclose(model.predict(pairs, score="logits"), expected.reshape(-1) if labels == 1 else expected, atol=PARITY)


def test_torch_and_the_fast_engine_agree_where_both_can(tiny_bert_folder):
    fast, slow = SentenceEncoder.load(tiny_bert_folder), SentenceEncoder.load(tiny_bert_folder, engine="torch", device="cpu")
    assert (fast.engine.placement.engine, slow.engine.placement.engine) == ("fast", "torch")
    np.testing.assert_allclose(slow.encode(SHORT), fast.encode(SHORT), atol=PARITY)
    assert slow.fingerprint == fast.fingerprint


def test_bfloat16_is_near_and_has_another_fingerprint(folder_of):
    whole = SentenceEncoder.load(folder_of("roformer"))
    half = SentenceEncoder.load(folder_of("roformer"), compute="bfloat16", device="cpu")
    assert float((half.encode(SHORT) * whole.encode(SHORT)).sum(axis=1).min()) > 0.99
    assert half.fingerprint != whole.fingerprint
    with pytest.raises(UsageError, match="compute='int8' does not run here: cpu computes in bfloat16 or float32"):
        SentenceEncoder.load(folder_of("roformer"), compute="int8", device="cpu")


def test_devices_are_refused_by_name(folder_of, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DeviceError, match=r"^device 'cuda' \(NVIDIA GPU\) is not there: torch "):
        SentenceEncoder.load(folder_of("roformer"), device="cuda")
    with pytest.raises(UsageError, match="device 'openvino' runs the fast engine only; torch computes on cuda, rocm, cpu, mps"):
        SentenceEncoder.load(folder_of("roformer"), device="openvino")


def test_without_the_extra_one_line_names_it(folder_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("munjang.train")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"a model of type 'roformer', which runs through torch, needs the extra 'train'") as caught:
        SentenceEncoder.load(folder_of("roformer"))
    assert str(caught.value).endswith("pip install 'munjang[train]'")


def test_the_fast_engine_refuses_and_names_the_other(folder_of):
    with pytest.raises(FolderError, match=r"model_type 'roformer' does not run on the fast engine; .*\n  load it with engine='torch'"):
        SentenceEncoder.load(folder_of("roformer"), engine="fast")
    with pytest.raises(UsageError, match="engine='onnx' is unknown"):
        SentenceEncoder.load(folder_of("roformer"), engine="onnx")


def change_config(folder: Path, target: Path, **changes: Any) -> Path:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    write_json(target / "config.json", config)
    return target


def change_weights(folder: Path, target: Path, change: Callable[[dict[str, np.ndarray]], None]) -> Path:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder, target)
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    return target


def remove(tensors: dict[str, np.ndarray]) -> None:
    del tensors[next(name for name in tensors if "attention" in name and name.endswith("weight"))]


def spoil(tensors: dict[str, np.ndarray]) -> None:
    name = next(name for name in tensors if name.endswith("bias"))
    tensors[name] = np.full_like(tensors[name], np.nan)


def test_hostile_folders_are_refused_in_one_line_and_run_nothing(folder_of, tmp_path):
    folder = folder_of("roformer")
    unknown = change_config(folder, tmp_path / "unknown", model_type="sixpack")
    remote = change_config(folder, tmp_path / "remote", auto_map={"AutoModel": "evil.Model"})
    decoder = change_config(folder, tmp_path / "decoder", model_type="bart")
    heads = change_config(folder, tmp_path / "heads", num_attention_heads=7)
    missing = change_weights(folder, tmp_path / "missing", remove)
    damaged = change_weights(folder, tmp_path / "damaged", spoil)
    pickled = tmp_path / "pickled"
    shutil.copytree(folder, pickled)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    for place, words in (
        (unknown, "model_type 'sixpack' is known neither to the fast engine nor to the installed transformers"),
        (remote, "'auto_map' asks to run code"),
        (decoder, "decoder|no tensor"),
        (heads, "transformers cannot load it"),
        (missing, "the weights have no tensor"),
        (damaged, "holds NaN or infinite values"),
        (pickled, "a format that can run code on loading"),
    ):
        with pytest.raises(FolderError, match=words):
            SentenceEncoder.load(place)


def test_an_architecture_that_is_not_that_of_the_type_is_refused(tmp_path):
    folder = build(tmp_path / "cross", "roformer", kind="AutoModelForSequenceClassification", labels=1)
    with pytest.raises(FolderError, match="names the architecture 'GPT2ForSequenceClassification', but its model_type is that of RoFormer"):
        CrossEncoder.load(change_config(folder, tmp_path / "other", architectures=["GPT2ForSequenceClassification"]))
