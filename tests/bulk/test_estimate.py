"""The estimate is arithmetic over what was measured."""

from __future__ import annotations

import pytest
from tests.bulk.conftest import write_jsonl

from munjang.bulk.estimate import EFFICIENCY, estimate
from munjang.bulk.settings import BulkSettings
from munjang.errors import InputError, UsageError


def test_hours_shards_and_disk_follow_from_rate_and_rows(tmp_path, tiny_bert_folder):
    source = write_jsonl(tmp_path / "a.jsonl", 200)
    found = estimate([str(source)], model=str(tiny_bert_folder), rows=1_000_000, workers=10)
    assert found.rows == 1_000_000
    assert found.shards == 62
    assert found.sample == 200
    assert found.hours == pytest.approx(1e6 / (found.rows_per_second * 10 * EFFICIENCY) / 3600, rel=0.01, abs=1e-4)
    assert found.worker_hours == pytest.approx(1e6 / found.rows_per_second / 3600, rel=0.01, abs=1e-4)
    assert found.bytes_by_precision["float32"] - found.bytes_by_precision["float16"] == 1_000_000 * 32 * 2
    assert found.output_bytes == found.bytes_by_precision["float32"]
    assert 0 < found.tokens_per_text < 24
    assert found.input_bytes == pytest.approx(source.stat().st_size * 5_000, rel=0.01)


def test_rows_are_guessed_from_the_size_of_the_files(tmp_path, tiny_bert_folder):
    source = write_jsonl(tmp_path / "a.jsonl", 300)
    assert estimate([str(source)], model=str(tiny_bert_folder)).rows == 300


def test_an_input_without_rows_cannot_be_measured(tmp_path, tiny_bert_folder):
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InputError, match="no rows"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder))
    with pytest.raises(UsageError, match="workers is 0"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder), workers=0)
    with pytest.raises(UsageError, match="shard_rows"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder), settings=BulkSettings(shard_rows=0))


def test_a_parquet_file_is_measured_by_its_first_rows(tmp_path, tiny_bert_folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["rain", "snow", "rain"] * 20}), tmp_path / "a.parquet")
    found = estimate([str(tmp_path / "a.parquet")], model=str(tiny_bert_folder))
    assert (found.rows, found.sample) == (60, 60)
    assert found.repeated == pytest.approx(1 - 2 / 60, abs=1e-3)


def test_an_input_of_broken_rows_cannot_be_measured_and_the_first_reason_is_told(tmp_path, tiny_bert_folder):
    (tmp_path / "a.jsonl").write_text('{"text": 1}\n' * 5)
    with pytest.raises(InputError, match=r"a.jsonl: none of the first rows can be used: 'text' is a int, expected a text"):
        estimate([str(tmp_path / "a.jsonl")], model=str(tiny_bert_folder))
