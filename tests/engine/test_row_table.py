"""Tables of which a run reads a few rows: from memory and from the cache they give the same rows, and never another's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.engine import onnxgraph, transformer
from munjang.engine.folder import read_folder
from munjang.engine.graph_cache import load_graph, store_graph
from munjang.engine.row_table import FED, FileTable, MemoryTable
from munjang.engine.session import CachedGraph
from munjang.errors import FolderError

ROWS_VE = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> FileTable:
    home = tmp_path_factory.mktemp("cache")
    weights = {"odd": np.arange(3, dtype=np.int8), "w": np.arange(4, dtype=np.int64)}
    assert store_graph("key", CachedGraph(b"odd", weights, tables={FED + "words": MemoryTable(ROWS_VE)}), home=home)
    graph = load_graph("key", home=home)
    assert graph is not None
    assert sorted(graph.weights) == ["odd", "w"]
    table = graph.tables[FED + "words"]
    assert isinstance(table, FileTable)
    return table


@given(ids=st.lists(st.integers(0, 49), max_size=80))
def test_rows_of_a_file_are_those_of_memory(stored: FileTable, ids: list[int]) -> None:
    ids_T = np.array(ids, np.int64)
    assert stored.take(ids_T).tobytes() == MemoryTable(ROWS_VE).take(ids_T).tobytes() == ROWS_VE[ids_T].tobytes()


def test_the_whole_table_comes_back(stored: FileTable) -> None:
    assert stored.read().tobytes() == ROWS_VE.tobytes()


@pytest.mark.parametrize("number", [-1, 50])
def test_a_row_outside_the_table_is_refused(stored: FileTable, number: int) -> None:
    for table in (stored, MemoryTable(ROWS_VE)):
        with pytest.raises(IndexError, match="expected 0 to 49"):
            table.take(np.array([3, number]))


def test_a_file_that_was_cut_while_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(ROWS_VE.tobytes())
    with path.open("rb") as file:
        table = FileTable(file, 0, (50, 6))
    path.write_bytes(ROWS_VE.tobytes()[:100])
    with pytest.raises(FolderError, match="ends before one of its 50 rows"):
        table.take(np.array([49]))


def test_a_table_in_memory_does_not_change_with_the_array_it_came_from() -> None:
    source = bytearray(ROWS_VE.tobytes())
    table = MemoryTable(np.frombuffer(source, np.float32).reshape(50, 6)).own()
    source[:] = bytes(len(source))
    assert table.read().tobytes() == ROWS_VE.tobytes()


@pytest.mark.parametrize("kept", [(0, 2**20), (2**20, 2**21)], ids=["from the cache", "written each time"])
def test_vectors_do_not_depend_on_who_holds_the_table(
    tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: tuple[int, int]
) -> None:
    folder, ids = read_folder(tiny_bert_folder), [[2, 7, 9, 3], [2, 3], [2, 7, 7, 7, 3]]
    usual = transformer.TransformerEngine(folder).vectors(ids)
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path))
    monkeypatch.setattr(transformer, "KEPT_BYTES", kept)
    monkeypatch.setattr(onnxgraph, "SMALLEST_BYTES", 0)
    for _ in range(2):
        engine = transformer.TransformerEngine(folder)
        assert engine.vectors(ids).tobytes() == usual.tobytes()
        assert len(engine.layer_outputs(ids[0])) == engine.layers + 1
