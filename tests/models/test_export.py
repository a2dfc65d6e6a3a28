"""Export: one ONNX graph that others run with the same vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from munjang import SentenceEncoder, export_onnx
from munjang.errors import UsageError

TEXTS = ["a", "rain on a roof", "비가 온다", "one two"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))


def run_exported(path: Path, model: SentenceEncoder, texts: list[str]) -> np.ndarray[Any, Any]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path.parents[1] / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=model.tokenizer.pad_id)
    encodings = tokenizer.encode_batch(texts)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {
        "input_ids": np.array([e.ids for e in encodings]),
        "attention_mask": np.array([e.attention_mask for e in encodings]),
        "token_type_ids": np.array([e.type_ids for e in encodings]),
    }
    names = {node.name for node in session.get_inputs()}
    vectors: np.ndarray[Any, Any] = session.run(None, {name: array for name, array in feed.items() if name in names})[0]
    return vectors


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "electra", "distilbert", "mpnet"])
def test_the_exported_graph_gives_the_models_vectors(tiny_folder: Any, family: str, tmp_path: Path, home: None) -> None:
    model = SentenceEncoder.load(tiny_folder(family))
    report = export_onnx(model, tmp_path / "out")
    assert report.max_difference <= 1e-5
    onnx.checker.check_model(str(report.path), full_check=True)
    np.testing.assert_allclose(run_exported(report.path, model, TEXTS), model.encode(TEXTS), atol=1e-5)


def test_float32_uses_standard_operators_only(tiny_bert_folder: Path, tmp_path: Path, home: None) -> None:
    report = export_onnx(SentenceEncoder.load(tiny_bert_folder), tmp_path / "out")
    assert {opset.domain for opset in onnx.load(report.path).opset_import} == {""}


def test_int8_is_smaller_and_near(tiny_bert_folder: Path, tmp_path: Path, home: None) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    full, small = export_onnx(model, tmp_path / "out"), export_onnx(model, tmp_path / "out", compute="int8")
    assert small.bytes < full.bytes
    near = (run_exported(small.path, model, TEXTS) * model.encode(TEXTS)).sum(axis=1)
    assert near.min() > 0.98


def test_the_exported_folder_loads_again(tiny_bert_folder: Path, tmp_path: Path, home: None) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    export_onnx(model, tmp_path / "out")
    np.testing.assert_array_equal(SentenceEncoder.load(tmp_path / "out").encode(TEXTS), model.encode(TEXTS))


def test_a_target_that_holds_something_else_is_refused(tiny_bert_folder: Path, tmp_path: Path, home: None) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        export_onnx(SentenceEncoder.load(tiny_bert_folder), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
