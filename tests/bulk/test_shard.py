"""One shard: its files, its receipt, its rejected rows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from munjang.bulk.job import BulkJob, BulkSettings, ShardSpec
from munjang.bulk.output import open_output
from munjang.bulk.run import describe
from munjang.bulk.shard import ShardProblem, encode_shard, run_shard
from munjang.bulk.shard_files import read_block
from munjang.bulk.storage import LocalStorage
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.vectors.quantize import quantize

pytest.importorskip("pyarrow")


@pytest.fixture(scope="session")
def encoder(tiny_bert_folder):
    return SentenceEncoder.load(tiny_bert_folder, threads=1)


def one_shard(path, model, **settings) -> tuple[BulkJob, ShardSpec]:
    job = describe([str(path)], model, BulkSettings(**settings))
    return job, ShardSpec(0, 0, job.inputs[0].begin, path.stat().st_size)


def read(job: BulkJob, folder, receipt):
    return read_block([(folder / file.name).read_bytes() for file in receipt.files], job, where="the shard")


@pytest.mark.parametrize("format", ["parquet", "npy"])
@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "uint8", "binary", "ubinary"])
def test_a_shard_holds_what_encode_gives(tmp_path, news, tiny_bert_folder, encoder, format, precision):
    job, spec = one_shard(news, tiny_bert_folder, format=format, precision=precision, keep_text=True)
    receipt = encode_shard(job, spec, encoder, LocalStorage(tmp_path))
    block = read(job, tmp_path, receipt)
    assert block.ids == [f"r{number}" for number in range(90)]
    assert receipt.rows == len(block.texts) == 90
    vectors = encoder.encode(block.texts)
    expected = quantize(vectors, precision)
    assert block.vectors_ND.dtype == expected.dtype
    assert block.vectors_ND.shape == expected.shape
    if precision.startswith("float"):
        np.testing.assert_allclose(
            block.vectors_ND.astype(np.float32), expected.astype(np.float32), atol=1e-3 if precision == "float16" else 2e-6
        )
    else:
        assert (block.vectors_ND == expected).mean() > 0.999
    for file in receipt.files:
        content = (tmp_path / file.name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)


def test_a_shard_that_is_done_is_not_done_again(tmp_path, news, tiny_bert_folder, encoder):
    job, spec = one_shard(news, tiny_bert_folder)
    first = encode_shard(job, spec, encoder, LocalStorage(tmp_path))
    changed = {path: path.stat().st_mtime_ns for path in (tmp_path / "vectors").iterdir()}
    assert encode_shard(job, spec, encoder, LocalStorage(tmp_path)) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "vectors").iterdir()} == changed
    (tmp_path / first.files[0].name).unlink()
    again = encode_shard(job, spec, encoder, LocalStorage(tmp_path))
    assert again.files == first.files


def test_equal_texts_are_encoded_once(tmp_path, tiny_bert_folder, encoder):
    (tmp_path / "a.txt").write_text("rain\nsnow\nrain\nrain\n")
    job, spec = one_shard(tmp_path / "a.txt", tiny_bert_folder)
    receipt = encode_shard(job, spec, encoder, LocalStorage(tmp_path))
    assert (receipt.rows, receipt.encoded) == (4, 2)
    block = read(job, tmp_path, receipt)
    assert (block.vectors_ND[0] == block.vectors_ND[2]).all()


def test_rows_that_are_too_long_are_rejected_when_asked_for(tmp_path, tiny_bert_folder, encoder):
    (tmp_path / "a.txt").write_text("rain\n" + "sleep " * 60 + "\nsnow\n")
    job, spec = one_shard(tmp_path / "a.txt", tiny_bert_folder, long_text="error")
    receipt = encode_shard(job, spec, encoder, LocalStorage(tmp_path))
    assert (receipt.rows, receipt.rejected) == (2, 1)
    [row] = map(json.loads, (tmp_path / "rejected/part-00000000.jsonl").read_text().splitlines())
    assert row == {"line": 1, "place": 5, "reason": "62 tokens, the model's limit is 24"}
    cut, spec = one_shard(tmp_path / "a.txt", tiny_bert_folder)
    assert encode_shard(cut, replace(spec, number=1), encoder, LocalStorage(tmp_path)).too_long == 1


class Brittle:
    """An encoder that cannot stand one word."""

    def __init__(self, encoder):
        self.encoder, self.max_length = encoder, encoder.max_length

    def encode_with_report(self, texts, **options):
        if any("poison" in text for text in texts):
            raise RuntimeError("node 7 failed")
        return self.encoder.encode_with_report(texts, **options)


def test_a_failure_of_the_model_names_shard_and_row(tmp_path, tiny_bert_folder, encoder):
    (tmp_path / "a.txt").write_text("rain\n" * 30 + "poison\x1b[31m\n" + "snow\n" * 30)
    job, spec = one_shard(tmp_path / "a.txt", tiny_bert_folder)
    outcome = run_shard(job, spec, Brittle(encoder), LocalStorage(tmp_path))
    assert isinstance(outcome, ShardProblem)
    assert "shard 0, a.txt byte 150: the model failed on 'poison\\x1b[31m' (RuntimeError: 'node 7 failed')" in outcome.message
    assert not (tmp_path / "receipts").exists()


def test_a_failing_disk_is_a_problem_with_the_shards_name(tmp_path, news, tiny_bert_folder, encoder):
    job, spec = one_shard(news, tiny_bert_folder)
    (tmp_path / "vectors").write_text("a file where a folder should be")
    outcome = run_shard(job, spec, encoder, LocalStorage(tmp_path))
    assert isinstance(outcome, ShardProblem)
    assert outcome.message.startswith("shard 0, news.jsonl from 0 to ")


def test_other_tools_read_the_vectors(tmp_path, news, encode):
    output = encode(news, tmp_path / "out")
    place = str(output / "vectors" / "*.parquet")
    block = open_output(output).block(0)
    dataset = pytest.importorskip("pyarrow.dataset")
    assert dataset.dataset(output / "vectors").to_table().num_rows == 90
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(place)
    assert frame.schema["vector"] == polars.Array(polars.Float32, 32)
    np.testing.assert_array_equal(frame["vector"].to_numpy()[: len(block.ids)], block.vectors_ND)
    duckdb = pytest.importorskip("duckdb")
    [(id, vector)] = duckdb.sql(f"SELECT id, vector FROM read_parquet('{place}') WHERE id = 'r1'").fetchall()
    np.testing.assert_array_equal(np.array(vector, dtype=np.float32), block.vectors_ND[block.ids.index(id)])
