"""A whole job on this machine: the same bytes whoever does it, refused changes, continued work."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
from tests.bulk.conftest import digest, write_news

from munjang.bulk.job import BulkSettings
from munjang.bulk.output import merge, open_output, read_manifest
from munjang.bulk.run import describe, encode_bulk, lock_output
from munjang.bulk.shard_files import read_checksummed, write_checksummed
from munjang.bulk.storage import LocalStorage, RemoteStorage
from munjang.errors import Busy, InputError, NoSpace, UsageError
from munjang.limits import usable_cores

pytest.importorskip("pyarrow")
needs_two = pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")


def test_what_lost_workers_left_half_written_is_gone_when_the_job_is_done(tmp_path, news, tiny_bert_folder):
    def watch(job, specs):
        def done(spec, receipt, before):
            for folder in ("vectors", "receipts"):
                (tmp_path / "out" / folder / f".part-{spec.number}.aa.part").write_bytes(b"half")

        return done

    encode_bulk([news], tmp_path / "out", model=tiny_bert_folder, shard_rows=20, workers=1, watch=watch)
    assert open_output(tmp_path / "out").check() == []
    assert not list((tmp_path / "out").rglob(".*.part"))


@needs_two
def test_the_bytes_do_not_depend_on_workers_or_threads(tmp_path, news, encode, copy_output):
    alone = digest(copy_output(tmp_path / "one"))
    assert len(alone) == 6
    assert digest(encode(news, tmp_path / "two", workers=2)) == alone
    assert digest(encode(news, tmp_path / "threads", threads=2)) == alone


def test_rejected_rows_are_told_with_file_line_and_reason(tmp_path, news, copy_output):
    output = copy_output(tmp_path / "out")
    rows = [json.loads(line) for line in (output / "rejected.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["file"], row["line"]) for row in rows] == [(str(news), 6), (str(news), 41), (str(news), 81)]
    lines = news.read_bytes().split(b"\n")
    assert all(news.read_bytes()[row["byte"] :].startswith(lines[row["line"] - 1]) for row in rows)
    assert rows[0]["reason"].startswith("not JSON")
    assert rows[1]["reason"] == "no column 'text', found 'id'"
    assert rows[2]["reason"] == "'text' is a int, expected a text"


def test_lines_are_counted_across_the_shards_of_each_file(tmp_path, encode, tiny_bert_folder):
    for name in ("a.csv", "b.csv"):
        good = "".join(f'{number},"two\nlines {number}"\n' for number in range(50))
        (tmp_path / name).write_text(f"id,text\n{good}51\n", encoding="utf-8")
    settings = {"shard_rows": 7}
    report = encode_bulk([tmp_path / "*.csv"], tmp_path / "out", model=tiny_bert_folder, **settings, workers=1)
    assert (report.rows, report.rejected, report.shards) == (100, 2, 16)
    rows = [json.loads(line) for line in (tmp_path / "out/rejected.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in rows] == [(str(tmp_path / name), 102) for name in ("a.csv", "b.csv")]


def test_a_job_is_continued_where_it_stopped(tmp_path, news, encode, copy_output):
    whole = copy_output(tmp_path / "whole")
    part = copy_output(tmp_path / "part")
    for name in ("manifest.json", "receipts/part-00000001.json", "vectors/part-00000001.parquet", "vectors/part-00000002.parquet"):
        if name == "manifest.json":
            value = read_checksummed((part / name).read_bytes(), where=name, advice="")
            (part / name).write_bytes(write_checksummed({**value, "receipts": None}))
        else:
            (part / name).unlink()
    (part / "vectors" / ".part-00000001.parquet.aa.part").write_bytes(b"half")
    with pytest.raises(UsageError, match=r"3 of 5 shards are done\n.*--resume"):
        encode(news, part)
    with pytest.raises(InputError, match="not done"):
        open_output(part)
    encode(news, part, resume=True)
    assert digest(part) == digest(whole)
    assert open_output(part).check() == []
    before = {path: path.stat().st_mtime_ns for path in part.rglob("*")}
    encode(news, part, resume=True)
    assert {path: path.stat().st_mtime_ns for path in part.rglob("*") if path.name != ".lock"} == {
        path: time for path, time in before.items() if path.name != ".lock"
    }


def test_another_model_other_settings_and_other_files_are_refused_with_the_difference(tmp_path, encode, tiny_folder):
    news = write_news(tmp_path)
    output = encode(news, tmp_path / "out")
    with pytest.raises(UsageError, match=r"precision: 'float32' then, 'int8' now\n  shard_rows: 20 then, 30 now"):
        encode(news, output, resume=True, precision="int8", shard_rows=30)
    other = tiny_folder("bert", pooling=("cls",))
    with pytest.raises(UsageError, match=r"model: .* then, .* now"):
        encode_bulk([news], output, model=other, shard_rows=20, keep_text=True, workers=1, resume=True)
    news.write_text(news.read_text(encoding="utf-8") + '{"text": "new"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"input: .*news.jsonl was [\d,]+ bytes then, has [\d,]+ now"):
        encode(news, output, resume=True)
    assert open_output(output).check() == []


def test_two_runs_in_one_folder_do_not_meet(tmp_path, news, encode):
    (tmp_path / "out").mkdir()
    with lock_output(str(tmp_path / "out")), pytest.raises(Busy, match="munjang bulk"):
        encode(news, tmp_path / "out")


def test_more_threads_than_cores_are_refused(tmp_path, news, encode):
    with pytest.raises(UsageError, match="cores"):
        encode(news, tmp_path / "out", workers=usable_cores(), threads=2)


def test_merged_files_hold_all_rows_in_order(tmp_path, tiny_bert_folder, copy_output):
    from munjang.models.sentence_encoder import SentenceEncoder

    output = open_output(copy_output(tmp_path / "out"))
    first = merge(output, tmp_path / "all.parquet")
    assert merge(output, tmp_path / "again.parquet") == first
    merge(output, tmp_path / "all.npy")
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "all.parquet")
    assert table.column("id").to_pylist() == [f"r{number}" for number in range(90)]
    vectors = np.load(tmp_path / "all.npy", allow_pickle=False)
    expected = SentenceEncoder.load(tiny_bert_folder).encode(table.column("text").to_pylist())
    np.testing.assert_allclose(vectors, expected, atol=2e-6)
    with pytest.raises(UsageError, match="ends in"):
        merge(output, tmp_path / "all.csv")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 192 kB."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", place], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_whole_shards_and_the_job_can_be_continued(tmp_path, news, encode, small_disk):
    whole = encode(news, tmp_path / "whole", shard_rows=10)
    (small_disk / "ballast").write_bytes(bytes(132_000))
    output = small_disk / "out"
    with pytest.raises(NoSpace, match="the disk is full"):
        encode(news, output, shard_rows=10)
    names = {path.name for path in (output / "vectors").iterdir()}
    receipts = {path.stem for path in (output / "receipts").iterdir()}
    assert 0 < len(receipts) < 9
    assert not any(name.startswith(".") for name in names)
    for name in names:
        assert (output / "vectors" / name).read_bytes() == (whole / "vectors" / name).read_bytes()
    (small_disk / "ballast").unlink()
    encode(news, output, resume=True, shard_rows=10)
    assert digest(output) == digest(whole)


def test_an_output_at_a_file_address_is_a_folder(tmp_path, news, encode, copy_output):
    here = copy_output(tmp_path / "here")
    encode(news, f"file://{tmp_path}/there")
    assert digest(tmp_path / "there") == digest(here)


def test_an_output_in_an_object_store_is_the_same(tmp_path, news, tiny_bert_folder, copy_output):
    fsspec = pytest.importorskip("fsspec")
    from munjang.bulk.output import begin, finish, open_receipts
    from munjang.bulk.plan import plan_shards
    from munjang.bulk.shard import encode_shard
    from munjang.models.sentence_encoder import SentenceEncoder

    here = copy_output(tmp_path / "here")
    storage = RemoteStorage("memory://bucket/out/")
    job = describe([str(news)], tiny_bert_folder, BulkSettings(shard_rows=20, keep_text=True))
    papers = begin(storage, job, plan_shards(job.inputs, job.settings))
    encoder = SentenceEncoder.load(tiny_bert_folder, threads=1)
    for spec in papers.specs:
        assert encode_shard(job, spec, encoder, storage) == encode_shard(job, spec, encoder, storage)
    finish(storage, papers, open_receipts(storage, papers.specs))
    assert open_output("memory://bucket/out").check() == []
    local = LocalStorage(here)
    assert storage.sizes("vectors") == local.sizes("vectors")
    assert storage.read_all("vectors", set(storage.sizes("vectors"))) == local.read_all("vectors", set(local.sizes("vectors")))
    assert storage.read("rejected.jsonl") == local.read("rejected.jsonl")
    assert storage.read("nothing") is storage.size("nothing") is None
    assert storage.sizes("nothing") == {}
    fsspec.filesystem("memory").rm("/bucket", recursive=True)


def test_a_foreign_manifest_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "a web page"}')
    with pytest.raises(InputError, match="is not the manifest of a bulk job"):
        read_manifest(LocalStorage(tmp_path))


def test_an_embedding_cache_saves_the_second_job_its_encoding(tmp_path, news, tiny_bert_folder):
    reports = []
    for name in ("one", "two"):
        settings = {"shard_rows": 20, "long_text": "error"}
        reports.append(encode_bulk([news], tmp_path / name, model=tiny_bert_folder, **settings, workers=1, cache=tmp_path / "cache.db"))
    assert reports[0].rows == reports[1].rows == 90
    assert reports[0].tokens > reports[1].tokens == 0
    for a, b in zip(open_output(tmp_path / "one").blocks(), open_output(tmp_path / "two").blocks(), strict=True):
        np.testing.assert_allclose(a.vectors_ND, b.vectors_ND, atol=2e-6)
    encode_bulk(
        [news],
        tmp_path / "three",
        model=tiny_bert_folder,
        shard_rows=20,
        dimensions=8,
        workers=1,
        cache=tmp_path / "cache.db",
    )
    assert open_output(tmp_path / "three").block(0).vectors_ND.shape[1] == 8
