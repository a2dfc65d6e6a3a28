"""Folders whose small files lie or are broken: each is one clear MunjangError that names the file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.conftest import quiet, write_json
from tests.hostile.conftest import edit, module, refused

from munjang.errors import FolderError
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"])
def test_missing_files_are_named(name, folder):
    (folder / name).unlink()
    refused(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json"]
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "5",
        '"x"',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ufeff{}",
        "\x00",
        "NaN",
        "[1]",
        "[[]]",
        "{}",
    ],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_broken_json_is_refused_or_read_as_far_as_it_is_enough(name, text, folder):
    (folder / name).write_text(text, encoding="utf-8")
    if text == "{}" and name not in ("config.json", "modules.json"):
        assert SentenceEncoder.load(folder).dimension == 32
    else:
        refused(folder)


def test_a_file_that_is_not_utf8_is_refused(folder):
    (folder / "config.json").write_bytes(b"\xff\xfe{\x00}\x00")
    refused(folder, "config.json")


def test_deeply_nested_json_of_100_megabytes_is_refused_without_reading_it(folder):
    with (folder / "config.json").open("wb") as file:
        file.write(b"[" * 5_000_000)
        file.truncate(100 * 2**20)
    refused(folder, "config.json", "too large")


def test_a_named_pipe_is_not_waited_for(folder):
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    refused(folder, "config.json")


ABSURD = [
    {"num_hidden_layers": 10**9},
    {"num_hidden_layers": 0},
    {"num_hidden_layers": 3},
    {"num_hidden_layers": -1},
    {"num_hidden_layers": "2"},
    {"num_hidden_layers": None},
    {"num_hidden_layers": 1e400},
    {"num_attention_heads": 0},
    {"num_attention_heads": 5},
    {"num_attention_heads": True},
    {"layer_norm_eps": "x"},
    {"layer_norm_eps": [1]},
    {"layer_norm_eps": -1},
    {"hidden_act": ["gelu"]},
    {"hidden_act": "os.system"},
    {"hidden_act": None},
    {"model_type": "llama"},
    {"model_type": None},
    {"model_type": ["bert"]},
    {"position_embedding_type": "relative_key"},
    {"is_decoder": True},
]


@pytest.mark.parametrize("change", ABSURD, ids=str)
def test_absurd_numbers_in_a_config_are_refused(change, folder):
    edit(folder / "config.json", **change)
    refused(folder)


def test_a_hidden_size_nobody_has_allocates_nothing(folder):
    edit(folder / "config.json", hidden_size=10**12, vocab_size=10**12, max_position_embeddings=10**12)
    assert SentenceEncoder.load(folder).dimension == 32  # sizes come from the weights


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("sentence_bert_config.json", {"max_seq_length": -3}),
        ("sentence_bert_config.json", {"max_seq_length": "many"}),
        ("sentence_bert_config.json", {"max_seq_length": 2}),
        ("config_sentence_transformers.json", {"prompts": ["x"]}),
        ("config_sentence_transformers.json", {"prompts": {"a": 5}}),
        ("config_sentence_transformers.json", {"default_prompt_name": ["x"]}),
        ("config_sentence_transformers.json", {"truncate_dim": "8"}),
        ("config_sentence_transformers.json", {"truncate_dim": -8}),
        ("config_sentence_transformers.json", {"similarity_fn_name": "os.system"}),
        ("1_Pooling/config.json", {"pooling_mode": "os.system"}),
        ("1_Pooling/config.json", {"pooling_mode": []}),
        ("1_Pooling/config.json", {"pooling_mode": [["mean"]]}),
        ("1_Pooling/config.json", {"pooling_mode": {"mean": 1}}),
    ],
    ids=lambda change: str(change)[:40],
)
def test_absurd_settings_are_refused(file, change, folder):
    edit(folder / file, **change)
    refused(folder)


@pytest.mark.parametrize("order", [[0, 2, 1], [1, 0], [0, 1, 1], [0, 1, 0], [2], []])
def test_modules_in_an_impossible_order_are_refused(order, folder):
    listed = json.loads((folder / "modules.json").read_text())
    write_json(folder / "modules.json", [listed[number] for number in order])
    refused(folder, "modules.json")


def test_a_tokenizer_with_more_pieces_than_the_weights_is_refused(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["xyz"] = 50_000
    write_json(folder / "tokenizer.json", tokenizer)
    refused(folder, "do not belong together")


def test_special_ids_beyond_the_weights_are_refused(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [50_000]
    write_json(folder / "tokenizer.json", tokenizer)
    refused(folder, "do not belong together")


@pytest.mark.parametrize(
    "text", ["{}", "[]", "", "null", '{"model": {"vocab": {}}}', '{"model": {"type": "WordPiece", "vocab": {"a": -1}}}', "[" * 9999]
)
def test_a_broken_tokenizer_is_refused(text, folder):
    (folder / "tokenizer.json").write_text(text)
    refused(folder, "tokenizer.json")


def test_a_plain_cross_encoder_is_pointed_to_rerank(tiny_folder, tmp_path):
    folder = Path(shutil.copytree(tiny_folder("bert", dialect="plain"), tmp_path / "cross"))
    edit(folder / "config.json", architectures=["BertForSequenceClassification"])
    refused(folder, "munjang rerank", "cross")


def test_a_new_cross_encoder_folder_is_pointed_to_rerank(tiny_folder, tmp_path):
    with quiet():
        import sentence_transformers as st

        plain = Path(shutil.copytree(tiny_folder("bert", dialect="plain"), tmp_path / "plain"))
        model = st.CrossEncoder(str(plain), num_labels=1, device="cpu", local_files_only=True)
        model.save_pretrained(str(tmp_path / "cross"))
    refused(tmp_path / "cross", "munjang rerank")


def test_a_path_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("text")
    refused(tmp_path / "empty")
    refused(tmp_path / "file.txt", "expected a model folder")
    for name in ("no-such-model", "a/b/c", "x" * 5000, "~nobody-here/x", "nul\x00", "sentence-transformers/none"):
        with pytest.raises(FolderError, match="neither a model's name nor a folder"):
            SentenceEncoder.load(name)


def test_a_folder_of_another_modality_is_refused(folder):
    module(folder, 0, type="sentence_transformers.models.CLIPModel")
    refused(folder, "CLIPModel")


def test_a_vision_model_is_refused(folder):
    edit(folder / "config.json", model_type="vit", architectures=["ViTModel"])
    refused(folder, "vit")
