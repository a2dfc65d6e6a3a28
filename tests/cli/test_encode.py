from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.cli import encode as encode_file
from munjang.limits import LIMITS
from munjang.models.sentence_encoder import SentenceEncoder

TEXTS = ["the rain is in the river", "비가 많이 온다", "cat"]


@pytest.fixture(scope="module")
def expected(tiny_bert_folder: Path) -> np.ndarray:
    return SentenceEncoder.load(tiny_bert_folder).encode(TEXTS)


@pytest.mark.parametrize("block", [1, 2, 100])
def test_a_npy_file_holds_the_vectors_of_encode(
    munjang: Callable[..., Any],
    tiny_bert_folder: Path,
    texts_file: Path,
    expected: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block: int,
) -> None:
    monkeypatch.setattr(encode_file, "BLOCK", block)
    outcome = munjang("encode", texts_file, "-o", tmp_path / "v.npy", "--model", tiny_bert_folder, "--json")
    assert outcome.code == 0, outcome.err
    summary = outcome.json
    assert (summary["rows"], summary["dimension"], summary["too_long"]) == (3, 32, 0)
    found = np.load(tmp_path / "v.npy")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("precision", ["float16", "int8", "uint8", "binary", "ubinary"])
def test_every_precision_comes_out_as_its_type(
    munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path, precision: str
) -> None:
    expected = SentenceEncoder.load(tiny_bert_folder).encode(TEXTS, precision=precision)  # type: ignore[arg-type]
    for suffix in (".npy", ".parquet"):
        assert munjang("encode", texts_file, "-o", tmp_path / f"v{suffix}", "-m", tiny_bert_folder, "--precision", precision).code == 0
    found = np.load(tmp_path / "v.npy")
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    pq = pytest.importorskip("pyarrow.parquet")
    rows = pq.read_table(tmp_path / "v.parquet")["vector"].to_pylist()
    np.testing.assert_array_equal(np.array(rows, found.dtype), found)


def test_parquet_and_json_lines_keep_ids_and_texts(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "news.csv"
    source.write_text("key,title\nx,the rain\ny,비가 온다\n", encoding="utf-8")
    options = ("--text-column", "title", "--id-column", "key", "--keep-text", "--model", tiny_bert_folder)
    for suffix in (".parquet", ".jsonl"):
        assert munjang("encode", source, "-o", tmp_path / f"v{suffix}", *options).code == 0
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.schema.field("vector").type.list_size == 32
    lines = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    assert table.select(["id", "text"]).to_pylist() == [{"id": row["id"], "text": row["text"]} for row in lines]
    assert [row["id"] for row in lines] == ["x", "y"]
    np.testing.assert_allclose(table["vector"].to_pylist(), [row["vector"] for row in lines])


def test_standard_input_becomes_json_lines(munjang: Callable[..., Any], tiny_bert_folder: Path, expected: np.ndarray) -> None:
    outcome = munjang("encode", "-", "--json", "--model", tiny_bert_folder, stdin="\n".join(TEXTS))
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose([json.loads(line)["vector"] for line in outcome.out.splitlines()], expected, atol=2e-6)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".jsonl"])
def test_no_texts_are_bad_input_and_make_no_file(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, suffix: str) -> None:
    outcome = munjang("encode", "-", "-o", tmp_path / f"v{suffix}", "--model", tiny_bert_folder)
    assert outcome.code == 3
    assert not list(tmp_path.iterdir())


def test_long_texts_are_counted_or_refused_by_line(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    lines = "cat\n" + "sleep " * 100
    cut = munjang("encode", "-", "--model", tiny_bert_folder, stdin=lines)
    assert cut.code == 0
    assert "munjang: 1 of 2 texts is longer than 24 tokens; only the beginning was read" in cut.err
    assert "\nmunjang: where: " in cut.err
    assert "windows" in munjang("encode", "-", "--model", tiny_bert_folder, "--long-text", "window", stdin=lines).err
    refused = munjang("encode", "-", "--model", tiny_bert_folder, "--long-text", "error", stdin=lines)
    assert refused.code == 3
    assert "munjang: stdin line 2: " in refused.err


def test_a_broken_line_stops_or_is_skipped(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "news.jsonl"
    source.write_text('{"text": "cat"}\n{"text": \n{"text": "dog"}\n')
    target = tmp_path / "v.npy"
    stopped = munjang("encode", source, "-o", target, "--model", tiny_bert_folder)
    assert stopped.code == 3
    assert "news.jsonl line 2" in stopped.err
    assert [path.name for path in tmp_path.iterdir()] == ["news.jsonl"]
    skipped = munjang("encode", source, "-o", target, "--model", tiny_bert_folder, "--skip-bad", "--json")
    assert (skipped.code, skipped.json["rows"], skipped.json["skipped"]) == (0, 2, 1)
    assert "skipped news.jsonl line 2" in skipped.err


def test_a_failed_run_leaves_the_old_file(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    target.write_bytes(b"old")
    assert munjang("encode", tmp_path / "nothing.txt", "-o", target, "--model", tiny_bert_folder).code == 3
    assert target.read_bytes() == b"old"


def test_a_wrong_output_is_refused_before_any_work(munjang: Callable[..., Any], texts_file: Path, tmp_path: Path) -> None:
    assert "expected a name that ends in .npy" in munjang("encode", texts_file, "-o", "v.txt").err
    outcome = munjang("encode", texts_file, "-o", tmp_path / "no" / "v.npy")
    assert outcome.code in (2, 3)


def test_a_npy_file_cannot_keep_texts(munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path) -> None:
    outcome = munjang("encode", texts_file, "-o", tmp_path / "v.npy", "--keep-text", "--model", tiny_bert_folder)
    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == [texts_file]


def test_a_text_that_no_model_takes_stops_or_is_skipped(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "news.jsonl"
    huge = "cat " * (LIMITS.max_text_bytes // 4 + 1)
    source.write_text(f'{{"text": "cat"}}\n{{"text": "{huge}"}}\n')
    stopped = munjang("encode", source, "-o", tmp_path / "v.npy", "--model", tiny_bert_folder)
    assert stopped.code == 3
    assert "news.jsonl line 2: " in stopped.err
    assert f"the limit is {LIMITS.max_text_bytes:,}" in stopped.err
    skipped = munjang("encode", source, "-o", tmp_path / "v.npy", "--model", tiny_bert_folder, "--skip-bad", "--json")
    assert (skipped.code, skipped.json["rows"], skipped.json["skipped"]) == (0, 1, 1)
    assert "skipped news.jsonl line 2" in skipped.err


def test_a_parquet_file_of_many_blocks_is_one_table(
    munjang: Callable[..., Any],
    tiny_bert_folder: Path,
    texts_file: Path,
    expected: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(encode_file, "BLOCK", 1)
    assert munjang("encode", texts_file, "-o", tmp_path / "v.parquet", "--model", tiny_bert_folder).code == 0
    table = pq.read_table(tmp_path / "v.parquet")
    assert len(set(table["id"].to_pylist())) == 3
    np.testing.assert_allclose(table["vector"].to_pylist(), expected, atol=2e-6)


def test_without_an_output_it_is_said_first_that_nothing_is_kept(
    munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path
) -> None:
    outcome = munjang("encode", texts_file, "-m", tiny_bert_folder)
    assert outcome.code == 0
    assert outcome.err.startswith("munjang: nothing is saved: ")
    assert "-o vectors.npy saves them, --json prints them" in outcome.err
    assert outcome.out.startswith("texts")
    # said before the model is loaded, and not where the vectors are the output
    assert munjang("encode", texts_file, "-m", tmp_path / "none").err.startswith("munjang: nothing is saved: ")
    assert "nothing is saved" not in munjang("encode", texts_file, "-m", tiny_bert_folder, "--json").err
    assert "nothing is saved" not in munjang("encode", texts_file, "-m", tiny_bert_folder, "-o", tmp_path / "v.npy").err
