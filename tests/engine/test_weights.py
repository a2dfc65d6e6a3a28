"""Weights equal those that the safetensors library reads, and no bytes whatever give anything but arrays or a FolderError."""

from __future__ import annotations

import json
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from munjang.engine.weights import Weights, find_weights
from munjang.errors import FolderError
from munjang.limits import LIMITS

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GOOD = save({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.float16), "c": np.zeros((0, 3), np.float32)})
ALLOCATION = 4 * 2**20


def opened(path):
    """Read everything the file holds, or return None if it is refused; nothing else may happen."""
    tracemalloc.start()
    try:
        weights = Weights([path])
        return {name: weights[name] for name in weights}
    except FolderError as error:
        assert path.name in str(error).splitlines()[0]  # noqa: PT017 (refusing is one of two right answers)
        return None
    finally:
        assert tracemalloc.get_traced_memory()[1] < ALLOCATION
        tracemalloc.stop()


def by_library(path):
    try:
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, ValueError, TypeError):
        return None


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_equal_the_librarys(dtype, tmp_path):
    source = {"x": np.arange(24).reshape(2, 3, 4).astype(dtype), "scalar": np.asarray(1, dtype), "empty": np.zeros((0, 5), dtype)}
    save_file(source, tmp_path / "model.safetensors", metadata={"format": "np"})
    weights = find_weights(tmp_path)
    assert set(weights) == set(source)
    assert len(weights) == 3
    for name, array in source.items():
        assert weights.shape(name) == array.shape
        assert np.array_equal(weights[name], array)
        assert weights[name].dtype == (np.float32 if array.dtype.kind == "f" else array.dtype)


def test_bfloat16_equals_torchs(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is the authority for bfloat16")
    from safetensors.torch import save_file as save_torch

    tensor = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    save_torch({"x": tensor}, tmp_path / "model.safetensors")
    assert np.array_equal(find_weights(tmp_path)["x"], tensor.float().numpy())


def test_a_tensor_of_whole_numbers_is_no_tensor_of_floats(tmp_path):
    save_file({"x": np.ones(3, np.int32)}, tmp_path / "model.safetensors")
    with pytest.raises(FolderError, match="I32, expected floating-point"):
        find_weights(tmp_path).floats("x")


def test_a_file_above_the_limit_is_not_opened(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(GOOD)
    with pytest.raises(FolderError, match="the limit is 50"):
        find_weights(tmp_path, limits=replace(LIMITS, max_weights_bytes=50))
    with pytest.raises(FolderError, match="header"):
        find_weights(tmp_path, limits=replace(LIMITS, max_weights_header_bytes=50))


def test_a_hole_between_tensors_changes_no_array(tmp_path):
    path = tmp_path / "holed.safetensors"
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8) + np.array([1, 2], np.float32).tobytes())
    found = opened(path)
    assert found is None or found["a"].tolist() == [1, 2]


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(tmp_path, raw):
    path = tmp_path / "fuzz.safetensors"
    path.write_bytes(raw)
    opened(path)


@FUZZ
@given(st.data())
def test_changed_bytes_are_refused_or_read_as_the_library_does(tmp_path, data):
    raw = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "fuzz.safetensors"
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw))
    same(opened(path), by_library(path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SIZES = st.integers(-2, 40) | st.sampled_from([2**31, 2**63, 10**30]) | JSON
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "F16", "BF16", "F64", "I8", "BOOL", "U64", "F8_E4M3"]) | JSON,
        "shape": st.lists(SIZES, max_size=4) | JSON,
        "data_offsets": st.lists(SIZES, min_size=2, max_size=2) | JSON,
    },
)


@FUZZ
@example({"a": {"dtype": "F32", "shape": [0, 10**30], "data_offsets": [0, 0]}}, b"")
@example({"a": {"dtype": "F32", "shape": [2**40, 0, 2**40], "data_offsets": [4, 4]}}, bytes(4))
@example({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, bytes(4))
@example(
    {"a": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)
)
@example({"a": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}}, bytes(5))
@example({"__metadata__": {"a": "b"}, "b": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\x00\x01\x07")
@example({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, bytes(4))
@given(st.dictionaries(st.sampled_from(["a", "b", "__metadata__"]), ENTRY | JSON, max_size=3) | JSON, st.binary(max_size=64))
def test_any_header_is_refused_or_read_as_the_library_does(tmp_path, header, data):
    text = json.dumps(header).encode()
    path = tmp_path / "fuzz.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    same(opened(path), by_library(path))


def same(ours, theirs):
    if ours is None or theirs is None:
        return
    assert set(ours) == set(theirs)
    for name, array in theirs.items():
        assert np.array_equal(ours[name], array.astype(np.float32) if array.dtype.kind == "f" else array)
