"""The estimate is arithmetic over what was measured."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from tests.bulk.conftest import write_jsonl

from munjang.bulk.estimate import EFFICIENCY, estimate
from munjang.bulk.job import BulkSettings
from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder


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
    with pytest.raises(InputError, match="holds no text"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder))
    with pytest.raises(UsageError, match="workers is 0"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder), workers=0)
    with pytest.raises(UsageError, match="shard_rows"):
        estimate([str(tmp_path / "a.txt")], model=str(tiny_bert_folder), settings=BulkSettings(shard_rows=0))


def test_a_small_parquet_file_is_measured_whole(tmp_path, tiny_bert_folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["rain", "snow", "rain"] * 20}), tmp_path / "a.parquet")
    found = estimate([str(tmp_path / "a.parquet")], model=str(tiny_bert_folder))
    assert (found.rows, found.sample) == (60, 60)
    assert found.repeated == pytest.approx(1 - 2 / 60, abs=1e-3)


def test_an_input_of_broken_rows_cannot_be_measured_and_the_first_reason_is_told(tmp_path, tiny_bert_folder):
    (tmp_path / "a.jsonl").write_text('{"text": 1}\n' * 5)
    with pytest.raises(InputError, match=r"a.jsonl: none of the rows tried can be used: 'text' is a int, expected a text"):
        estimate([str(tmp_path / "a.jsonl")], model=str(tiny_bert_folder))


CHANCE = random.Random(1)
SORTED = [f"rain {CHANCE.random():.4f}" for _ in range(3_000)]
SORTED += ["snow " + " ".join(f"{CHANCE.random():.4f}" for _ in range(12)) for _ in range(3_000)]
"""Short texts first: what its first rows say of such a file is wrong."""


def sorted_input(folder: Path, kind: str) -> list[str]:
    """Write the sorted texts in one format, or one file for the short ones and one for the long ones."""
    lines = [json.dumps({"text": text}) for text in SORTED] if kind == "jsonl" else SORTED
    if kind == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"text": SORTED}), folder / "a.parquet")
        return [str(folder / "a.parquet")]
    if kind != "two gzip files":
        (folder / f"a.{kind}").write_text("\n".join(lines) + "\n")
        return [str(folder / f"a.{kind}")]
    for name, part in (("a", lines[:3_000]), ("b", lines[3_000:])):
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress("\n".join(part).encode() + b"\n"))
    return [str(folder / "a.txt.gz"), str(folder / "b.txt.gz")]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet", "two gzip files"])
def test_a_sorted_input_is_measured_all_over(tmp_path, tiny_bert_folder, kind):
    inputs = sorted_input(tmp_path, kind)
    found = estimate(inputs, model=str(tiny_bert_folder))
    tokens = SentenceEncoder.load(tiny_bert_folder).encode_with_report(SORTED).tokens.mean()
    assert 700 <= found.sample <= 1_300
    if kind == "two gzip files":  # how far they unpack is a guess
        short = estimate(inputs[:1], model=str(tiny_bert_folder))
        assert found.tokens_per_text > 1.5 * short.tokens_per_text
    else:
        assert found.rows == pytest.approx(len(SORTED), rel=0.1)
        assert found.tokens_per_text == pytest.approx(tokens, rel=0.25)


def test_a_quoted_table_is_measured_from_its_beginning(tmp_path, tiny_bert_folder):
    rows = "".join(f'"snow, {number}"\n' for number in range(5_000))
    (tmp_path / "a.csv").write_text("text\n" + rows)
    found = estimate([str(tmp_path / "a.csv")], model=str(tiny_bert_folder))
    assert found.rows == pytest.approx(5_000, rel=0.05)
    assert found.sample == pytest.approx(1_000, rel=0.1)
