"""Folders that lie, are broken, or want to run code: each is one clear MunjangError that names the file, and nothing else happens."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import write_json

from munjang.errors import FolderError, MunjangError
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.fixture
def folder(tiny_bert_folder, tmp_path):
    return Path(shutil.copytree(tiny_bert_folder, tmp_path / "model"))


def edit(path, **changes):
    write_json(path, {**json.loads(path.read_text()), **changes})


def module(folder, number, **changes):
    listed = json.loads((folder / "modules.json").read_text())
    listed[number] |= changes
    write_json(folder / "modules.json", listed)


def refused(folder, *words):
    """Load the folder, expect one clear refusal that names it, and return its message."""
    with pytest.raises(MunjangError) as caught:
        SentenceEncoder.load(folder)
    first = str(caught.value).splitlines()[0]
    names = {path.name for path in folder.rglob("*")} if folder.is_dir() else set()
    assert any(name in first for name in {*names, folder.name})
    assert all(word in str(caught.value) for word in words), str(caught.value)
    return caught.value


def tensors_of(folder):
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    from safetensors.numpy import save_file

    save_file(tensors, folder / "model.safetensors")


def rewrite_header(folder, change):
    """Change the safetensors header and keep the data."""
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    text = json.dumps(change(header) or header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


WORDS = "embeddings.word_embeddings.weight"


class Canary:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_pickled_weights_are_not_opened(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(tmp_path / "canary")))
    refused(folder, "pytorch_model.bin", "can run code")
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "sentence_transformers.models.Evil",
        "sentence_transformers.models.Transformer.os.system",
        "builtins.eval",
        "",
        None,
        5,
        ["x"],
    ],
)
def test_modules_outside_the_table_are_refused(kind, folder):
    module(folder, 1, type=kind)
    refused(folder, "modules.json")


@pytest.mark.parametrize("path", ["/etc", "../model/1_Pooling", "1_Pooling/../..", "..", "link", "a\x00b"])
def test_module_paths_that_leave_the_folder_are_refused(path, folder, tmp_path):
    (tmp_path / "outside").mkdir()
    write_json(tmp_path / "outside/config.json", {"pooling_mode_mean_tokens": True})
    (folder / "link").symlink_to(tmp_path / "outside")
    module(folder, 1, path=path)
    refused(folder, "leaves the model folder")


@pytest.mark.parametrize(
    "name", ["../secret.safetensors", "/etc/passwd", "a/../../b.safetensors", "model.bin", "x\x00.safetensors", "missing.safetensors"]
)
def test_shards_outside_the_folder_are_refused(name, folder):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {WORDS: name}})
    refused(folder, "model.safetensors.index.json")


@pytest.mark.parametrize("table", [None, [], {"a": 5}, "x"])
def test_an_index_that_is_no_table_is_refused(table, folder):
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": table})
    refused(folder, "model.safetensors.index.json")


def test_remote_code_is_refused(folder):
    edit(folder / "config.json", auto_map={"AutoModel": "evil.Evil"})
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    refused(folder, "auto_map", "config.json")


@pytest.mark.parametrize("kept", [0, 4, 8, 200, 0.5, 0.999])
def test_truncated_weights_are_refused(kept, folder):
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(raw[: kept if isinstance(kept, int) else int(len(raw) * kept)])
    refused(folder, "model.safetensors")


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**40, 10**8])
def test_an_oversized_header_is_refused(size, folder):
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", size) + raw[8:])
    refused(folder, "model.safetensors", "header")


def test_overlapping_tensors_are_refused(folder):
    def overlap(header):
        names = [name for name in header if name != "__metadata__" and header[name]["shape"] == [32]]
        header[names[0]]["data_offsets"] = header[names[1]]["data_offsets"]

    rewrite_header(folder, overlap)
    refused(folder, "overlaps")


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "F64"},
        {"dtype": "I8"},
        {"dtype": "Q4"},
        {"dtype": ["F32"]},
        {"shape": [10**18, 10**18]},
        {"shape": [-1, 32]},
        {"shape": "32"},
        {"shape": [1.5]},
        {"shape": [1] * 100_000},
        {"data_offsets": [0]},
        {"data_offsets": [10**30, 10**30]},
        {"data_offsets": None},
        {"dtype": "I32"},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_lying_header_is_refused(change, folder):
    rewrite_header(folder, lambda header: header[WORDS].update(change))
    refused(folder, "model")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_weights_that_are_not_finite_are_refused(value, dtype, folder):
    tensors = {name: array.astype(dtype) for name, array in tensors_of(folder).items()}
    tensors["encoder.layer.1.output.dense.bias"][3] = value
    rewrite(folder, tensors)
    refused(folder, "NaN or infinite", "model.safetensors")


def test_numbers_too_large_for_float32_are_refused(folder):
    tensors = {name: array.astype(np.float64) for name, array in tensors_of(folder).items()}
    tensors[WORDS][0, 0] = 1e300
    rewrite(folder, tensors)
    refused(folder, "NaN or infinite")


RESHAPED = {
    WORDS: [(5,), (5, 7), (0, 32), (2, 32, 2), ()],
    "embeddings.position_embeddings.weight": [(64,), (64, 31), (1, 32), (0, 32)],
    "embeddings.token_type_embeddings.weight": [(0, 32), (2,), (2, 8)],
    "embeddings.LayerNorm.weight": [(31,), (1, 32)],
    "encoder.layer.0.attention.self.query.weight": [(32,), (16, 32), (32, 16)],
    "encoder.layer.0.attention.self.query.bias": [(1,), (32, 1)],
    "encoder.layer.1.intermediate.dense.weight": [(48, 31), (0, 32)],
}


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name, shapes in RESHAPED.items() for shape in shapes])
def test_tensors_of_other_shapes_are_refused(name, shape, folder):
    rewrite(folder, {**tensors_of(folder), name: np.ones(shape, np.float32)})
    refused(folder)


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


@pytest.mark.parametrize(
    "change",
    [
        {"activation_function": "os.system"},
        {"activation_function": ["x"]},
        {"in_features": 10**12},
        {"in_features": 0},
        {"out_features": None},
        {"out_features": 15},
        {"module_input_name": "token_embeddings"},
        {"bias": True},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_dense_module_that_does_not_fit_is_refused(change, tiny_folder, tmp_path):
    from tests.conftest import Dense

    folder = Path(shutil.copytree(tiny_folder("bert", modules=(Dense(16, bias=False),)), tmp_path / "dense"))
    edit(folder / "2_Dense/config.json", **change)
    refused(folder)


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
    from tests.conftest import quiet

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


WATCHED = """
    import sys
    seen = []
    watched = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.", "pickle.", "urllib.", "ftplib.")
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.errors import MunjangError
    import munjang.engine.transformer, munjang.text.tokenizer
    armed = [True]
    def hook(event, arguments):
        foreign = event == "import" and arguments[0] in ("evil", "torch", "transformers", "sentence_transformers")
        if armed[0] and (event.startswith(watched) or foreign):
            seen.append(event)
    sys.addaudithook(hook)
    for path in sys.argv[1:]:
        try:
            SentenceEncoder.load(path)
        except MunjangError as error:
            print(type(error).__name__)
        else:
            print("loaded")
    armed[0] = False
    print("events", seen)
"""


def test_no_code_runs_and_no_network_is_touched(tiny_bert_folder, tmp_path):
    canary = tmp_path / "canary"

    def copy(name):
        return Path(shutil.copytree(tiny_bert_folder, tmp_path / name))

    pickled, typed, mapped, lied = copy("pickled"), copy("typed"), copy("mapped"), copy("lied")
    (pickled / "model.safetensors").unlink()
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(canary)))
    module(typed, 1, type="os.system", path=f"touch {canary}")
    edit(mapped / "config.json", auto_map={"AutoModel": "evil.Evil"})
    (mapped / "evil.py").write_text(f"open({str(canary)!r}, 'w')")
    rewrite_header(lied, lambda header: header[WORDS].update(shape=[10**9, 10**9]))
    folders = [str(path) for path in (pickled, typed, mapped, lied, tiny_bert_folder)]
    code = textwrap.dedent(WATCHED)
    done = subprocess.run([sys.executable, "-c", code, *folders], capture_output=True, text=True, cwd=mapped, check=False, timeout=60)
    assert done.stdout.split("\n") == ["FolderError"] * 4 + ["loaded", "events []", ""], done.stdout + done.stderr
    assert not canary.exists()
