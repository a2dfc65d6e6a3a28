"""Folders taken apart and put together again, in float32 and float16."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.conftest import TEXTS, Dense

from munjang.errors import FolderError, UsageError
from munjang.models.compress.parts import read_parts, write_parts
from munjang.models.sentence_encoder import SentenceEncoder

WHOLE = ("normalize", Dense(out=12), "layernorm")


@pytest.mark.parametrize("dialect", ["legacy", "new"])
def test_a_round_trip_changes_no_vector(dialect: str, tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_folder("bert", modules=WHOLE, dialect=dialect)
    write_parts(read_parts(folder), tmp_path / "again")
    before, after = (SentenceEncoder.load(path).encode_with_report(TEXTS).vectors for path in (folder, tmp_path / "again"))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "mpnet"])
def test_half_is_half_the_bytes_and_sentence_transformers_agrees(
    family: str, tiny_folder: Callable[..., Path], tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    folder = tiny_folder(family, modules=WHOLE)
    write_parts(read_parts(folder), tmp_path / "half", half=True)
    files = sorted(path.relative_to(tmp_path / "half") for path in (tmp_path / "half").rglob("*.safetensors"))
    assert len(files) == 3
    for file in files:
        assert {tensor.dtype for tensor in load_file(tmp_path / "half" / file).values() if tensor.dtype.kind == "f"} == {np.dtype("f2")}
    sizes = [(path / "model.safetensors").stat().st_size for path in (folder, tmp_path / "half")]
    assert sizes[1] < 0.6 * sizes[0]
    texts = [text for text in TEXTS if text]
    ours = SentenceEncoder.load(tmp_path / "half").encode_with_report(texts).vectors
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, authority(tmp_path / "half", texts), atol=1e-4)
    assert np.abs(ours - SentenceEncoder.load(folder).encode_with_report(texts).vectors).max() < 0.05


def test_half_stays_half_through_another_round(tiny_bert_folder: Path, tmp_path: Path) -> None:
    write_parts(read_parts(tiny_bert_folder), tmp_path / "half", half=True)
    write_parts(read_parts(tmp_path / "half"), tmp_path / "again")
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("half", "again"))
    assert {name: tensor.dtype for name, tensor in one.items()} == {name: tensor.dtype for name, tensor in other.items()}
    assert all((one[name] == other[name]).all() for name in one)
    assert json.loads((tmp_path / "again/config.json").read_text(encoding="utf-8"))["torch_dtype"] == "float16"


def test_numbers_that_float16_cannot_hold_are_refused(tiny_bert_folder: Path, tmp_path: Path) -> None:
    parts = read_parts(tiny_bert_folder)
    large = {name: tensor * np.float32(1e6) for name, tensor in parts.tensors.items()}
    with pytest.raises(FolderError, match="float16 cannot"):
        write_parts(replace(parts, tensors=large), tmp_path / "half", half=True)
    assert not (tmp_path / "half").exists()


def test_a_folder_that_holds_something_is_not_written_over(tiny_bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="not empty"):
        write_parts(read_parts(tiny_bert_folder), tmp_path)
