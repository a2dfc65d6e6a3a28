"""Weights that lie, are broken, or do not fit: refused by name before anything is allocated or computed."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Dense, write_json
from tests.hostile.conftest import WORDS, edit, refused, rewrite, rewrite_header, tensors_of


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
    folder = Path(shutil.copytree(tiny_folder("bert", modules=(Dense(16, bias=False),)), tmp_path / "dense"))
    edit(folder / "2_Dense/config.json", **change)
    refused(folder)
