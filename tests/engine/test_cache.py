"""The graph cache: never required, never trusted when damaged, never half written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.engine import transformer
from munjang.engine.folder import read_folder
from munjang.engine.graph_cache import SUFFIX, load_graph, make_cache_key, store_graph
from munjang.engine.session import CachedGraph

GRAPH = CachedGraph(b"graph bytes", {"w": np.arange(12, dtype=np.int8).reshape(3, 4), "s": np.float32([1, 2])}, {"layers": 2})
KEY = make_cache_key("weights", "int8")


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    assert store_graph(KEY, GRAPH, home=tmp_path)
    found = load_graph(KEY, home=tmp_path)
    assert found is not None
    assert found.model == GRAPH.model
    assert found.facts == GRAPH.facts
    assert {name: array.tolist() for name, array in found.weights.items()} == {"w": GRAPH.weights["w"].tolist(), "s": [1, 2]}


def test_another_key_is_not_found(tmp_path: Path) -> None:
    store_graph(KEY, GRAPH, home=tmp_path)
    assert load_graph(make_cache_key("other weights", "int8"), home=tmp_path) is None


@settings(max_examples=200, deadline=None)
@given(place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    home = tmp_path_factory.mktemp("cache")
    store_graph(KEY, GRAPH, home=home)
    path = home / (KEY + SUFFIX)
    raw = bytearray(path.read_bytes())
    raw[place % len(raw)] ^= 1 << bit
    path.write_bytes(raw)
    assert load_graph(KEY, home=home) is None


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100])
def test_a_truncated_entry_is_ignored(tmp_path: Path, size: int) -> None:
    store_graph(KEY, GRAPH, home=tmp_path)
    path = tmp_path / (KEY + SUFFIX)
    path.write_bytes(path.read_bytes()[:size])
    assert load_graph(KEY, home=tmp_path) is None


def test_a_place_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert not store_graph(KEY, GRAPH, home=blocked)
    assert load_graph(KEY, home=blocked) is None


def test_nothing_temporary_is_left(tmp_path: Path) -> None:
    store_graph(KEY, GRAPH, home=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [KEY + SUFFIX]


def test_a_usual_model_in_float32_starts_from_its_cache_with_the_same_vectors(
    tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path))
    monkeypatch.setattr(transformer, "KEPT_BYTES", (0, 2**20))
    folder, ids = read_folder(tiny_bert_folder), [[2, 7, 9, 3], [2, 3]]
    written = transformer.TransformerEngine(folder).vectors(ids)
    monkeypatch.setattr(transformer, "_write_graph", None)
    assert transformer.TransformerEngine(folder).vectors(ids).tobytes() == written.tobytes()
    monkeypatch.setattr(transformer, "KEPT_BYTES", (2**24, 2**29))
    with pytest.raises(TypeError):  # a small one is written each time
        transformer.TransformerEngine(folder)
