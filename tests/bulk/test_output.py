"""What a finished job's folder says when it is read again: files that are missing or changed, and jobs without rows."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.bulk.conftest import digest, write_jsonl, write_news

from munjang.bulk.find_inputs import find_inputs
from munjang.bulk.job import BulkSettings
from munjang.bulk.output import merge, open_output, open_receipts, read_manifest
from munjang.bulk.pair_blocks import mine_output
from munjang.bulk.run import encode_bulk
from munjang.bulk.shard_files import CHECKSUM, read_checksummed, write_checksummed
from munjang.bulk.storage import LocalStorage, RemoteStorage, open_storage
from munjang.bulk.worker_config import WorkerConfig
from munjang.errors import DamagedFile, InputError, MunjangError, NoSpace, UsageError

pytest.importorskip("pyarrow")

FIRST = "vectors/part-00000000.parquet"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_bert_folder):
    """A folder with `news.jsonl` and the finished job `out`; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    settings = {"shard_rows": 20, "keep_text": True}
    encode_bulk([write_news(folder)], folder / "out", model=tiny_bert_folder, **settings, workers=1)
    return folder


@pytest.fixture
def source(finished):
    return finished / "news.jsonl"


@pytest.fixture
def output(finished, tmp_path):
    """A copy of the finished job that may be changed."""
    return shutil.copytree(finished / "out", tmp_path / "out")


def test_a_missing_file_is_told_and_the_others_can_still_be_read(output):
    (output / FIRST).unlink()
    found = open_output(output)
    assert found.check() == [f"{FIRST} is missing"]
    with pytest.raises(InputError, match=rf"out/{FIRST}: is missing\n.*--resume"):
        found.block(0)
    assert len(found.block(1).ids) > 0


def test_a_changed_file_is_told_by_its_checksum(output):
    content = bytearray((output / FIRST).read_bytes())
    content[len(content) // 2] ^= 1
    (output / FIRST).write_bytes(content)
    found = open_output(output)
    assert found.check() == [f"{FIRST} is not what was written: its checksum differs"]
    with pytest.raises(DamagedFile, match=rf"out/{FIRST}: is not what was written .*\n.*remove it and continue with munjang bulk --resume"):
        found.block(0)


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no manifest.json, expected the folder that munjang bulk wrote"):
        open_output(tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_a_job_without_rows_has_nothing_to_merge(tmp_path, encode, suffix):
    (tmp_path / "rejected.jsonl").write_text('{"text": 1}\n')
    output = open_output(encode(tmp_path / "rejected.jsonl", tmp_path / "out"))
    assert output.rows == 0
    with pytest.raises(InputError, match="the job has no rows to merge"):
        merge(output, tmp_path / f"all.{suffix}")
    assert not list(tmp_path.glob("*all*"))


@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_a_shard_of_which_every_row_was_rejected_leaves_no_gap(tmp_path, encode, suffix):
    lines = ['{"text": "rain"}'] * 3 + ['{"text": 123456}'] * 6 + ['{"text": "snow"}'] * 3
    (tmp_path / "a.jsonl").write_text("".join(line + "\n" for line in lines))
    output = open_output(encode(tmp_path / "a.jsonl", tmp_path / "out", shard_rows=3))
    assert 0 in [receipt.rows for receipt in output.receipts[1:-1]]
    merge(output, tmp_path / f"all.{suffix}")
    if suffix == "npy":
        assert np.load(tmp_path / "all.npy", allow_pickle=False).shape == (6, 32)
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "all.parquet")
        assert table.column("text").to_pylist() == ["rain"] * 3 + ["snow"] * 3


def reopened(output):
    """Take the receipts out of the manifest, as if the run had ended just before it wrote them."""
    path = output / "manifest.json"
    path.write_bytes(write_checksummed({**read_checksummed(path.read_bytes(), where="", advice=""), "receipts": None}))


def test_a_watch_is_told_which_shards_an_earlier_run_did(source, output, tiny_bert_folder):
    reopened(output)
    (output / "receipts/part-00000001.json").unlink()
    told = []
    settings = {"shard_rows": 20, "keep_text": True}

    def watch(job, specs):
        return lambda spec, receipt, before: told.append((spec.number, receipt.shard, before))

    report = encode_bulk([source], output, model=tiny_bert_folder, **settings, workers=1, resume=True, watch=watch)
    assert told == [(0, 0, True), (2, 2, True), (3, 3, True), (4, 4, True), (1, 1, False)]
    assert (report.rows, report.shards) == (90, 5)
    assert 0 < report.new_rows < 30


def test_other_input_files_are_told_one_by_one(tmp_path, tiny_bert_folder):
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("rain\n")

    def run(*names: str, resume: bool = False) -> None:
        inputs = [tmp_path / name for name in names]
        encode_bulk(inputs, tmp_path / "out", model=tiny_bert_folder, workers=1, resume=resume)

    run("a.txt", "b.txt")
    with pytest.raises(UsageError, match=r"input: \S+/b.txt then, not there now\n  input: \S+/c.txt is new\n  call it as it was begun"):
        run("a.txt", "c.txt", resume=True)
    with pytest.raises(UsageError, match=r"differs from this one\n  input: the files stand in another order\n"):
        run("b.txt", "a.txt", resume=True)


def test_a_plan_that_is_gone_is_told(output):
    (output / "plan.jsonl").unlink()
    with pytest.raises(DamagedFile, match=r"out/plan.jsonl: is missing\n.*begin again in another folder"):
        open_output(output)


def test_a_plan_that_was_changed_is_told(output):
    plan = output / "plan.jsonl"
    plan.write_bytes(plan.read_bytes().replace(b'"start": 0', b'"start": 1'))
    with pytest.raises(DamagedFile, match=r"out/plan.jsonl: is not what was written \(its checksum differs\)\n  restore it"):
        open_output(output)


OTHER = r"is not what munjang bulk writes \(other keys or types than a Receipt"
SHORT = "does not hold one receipt for each of 5 shards"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda receipts: [], SHORT),
        (lambda receipts: {}, SHORT),
        (lambda receipts: receipts[:-1], SHORT),
        (lambda receipts: [{**each, "files": []} for each in receipts], "holds a receipt without files"),
        (
            lambda receipts: [{**each, "rows": "ten"} for each in receipts],
            OTHER,
        ),
        (
            lambda receipts: [{**each, "more": 1} for each in receipts],
            OTHER,
        ),
    ],
    ids=["none", "an object", "one missing", "no files", "a word for a number", "another key"],
)
def test_a_manifest_without_a_right_receipt_for_each_shard_is_damaged(output, change, words):
    path = output / "manifest.json"
    value = read_checksummed(path.read_bytes(), where="", advice="")
    path.write_bytes(write_checksummed({**value, "receipts": change(value["receipts"])}))
    with pytest.raises(DamagedFile, match=rf"out/manifest.json: {words}.*\n  restore"):
        open_output(output)


def test_rejected_rows_that_are_gone_are_told_with_what_brings_them_back(source, output, encode):
    reopened(output)
    whole = (output / "rejected.jsonl").read_bytes()
    (output / "rejected/part-00000000.jsonl").unlink()
    with pytest.raises(DamagedFile, match=r"rejected/part-00000000.jsonl: is missing\n  remove receipts/part-00000000.json and .*--resume"):
        encode(source, output, resume=True)
    (output / "receipts/part-00000000.json").unlink()
    encode(source, output, resume=True)
    assert (output / "rejected.jsonl").read_bytes() == whole


@pytest.mark.parametrize("options", [{"threshold": 1.5}, {"threshold": -2.0}, {"top": 0}], ids=str)
def test_pairs_with_impossible_numbers_are_refused(output, options):
    with pytest.raises(UsageError, match=r"threshold is .* and top is .*expected -1 to 1, and at least 1"):
        mine_output(str(output), **options)


def test_pairs_of_packed_vectors_are_refused(tmp_path, news, encode):
    with pytest.raises(UsageError, match=r"out: holds binary vectors, pairs need float32 or float16"):
        mine_output(str(encode(news, tmp_path / "out", precision="binary")))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (BulkSettings(precision="float8"), "precision is 'float8', expected one of float32, float16"),
        (BulkSettings(format="csv"), "format is 'csv', expected one of parquet, npy"),
        (BulkSettings(input_format="json"), r"a JSON list cannot be read in parts\n  convert it to JSON Lines"),
    ],
    ids=["precision", "format", "JSON"],
)
def test_settings_that_no_job_has_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        settings.check()


@pytest.mark.parametrize("config", [WorkerConfig(workers=0), WorkerConfig(threads=0)], ids=["workers", "threads"])
def test_no_worker_and_no_thread_is_refused(config):
    with pytest.raises(UsageError, match=r"(workers|threads) is 0, expected at least 1"):
        config.processes()


def test_no_input_at_all_is_refused():
    with pytest.raises(UsageError, match="there is nothing to read, expected files, folders or patterns"):
        find_inputs([])


def test_an_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="out: is a file, expected a folder for the output"):
        open_storage(str(tmp_path / "out"), create=True)
    assert (tmp_path / "out").read_text() == "mine"


def test_a_job_is_run_at_another_systems_address_without_a_lock(tmp_path, source, encode, finished):
    pytest.importorskip("fsspec")
    encode(source, f"local://{tmp_path}/there")
    assert not (tmp_path / "there/.lock").exists()
    storage = RemoteStorage(f"local://{tmp_path}/there")
    papers = read_manifest(storage)
    assert open_receipts(storage, papers.specs) == dict(enumerate(papers.receipts))
    assert storage.sizes("vectors") == LocalStorage(finished / "out").sizes("vectors")
    names = set(storage.sizes("vectors"))
    assert storage.read_all("vectors", names) == LocalStorage(finished / "out").read_all("vectors", names)


@pytest.mark.parametrize(
    ("place", "name", "kind", "words"),
    [
        ("dev", "full", NoSpace, r"dev/full: no space is left\n  free some and continue with --resume"),
        ("proc", "none/a.json", MunjangError, r"proc/none/a.json: cannot be written \("),
    ],
    ids=["a full store", "a store that refuses"],
)
@pytest.mark.parametrize("pieces", [False, True], ids=["at once", "in pieces"])
def test_what_a_store_cannot_take_is_told_with_its_place(place, name, kind, words, pieces):
    pytest.importorskip("fsspec")
    with pytest.raises(kind, match=words) as caught:
        RemoteStorage(f"local:///{place}").write(name, iter([b"one", b"two"]) if pieces else b"content")
    assert type(caught.value) is kind


def test_pairs_of_a_folder_that_was_written_anew_are_the_new_ones(tmp_path, encode, monkeypatch):
    """Blocks are kept between calls in one process; what stood at the same place before is not taken for what stands there now."""
    monkeypatch.chdir(tmp_path)
    for count, seed in ((90, 1), (30, 2)):
        source = write_jsonl(tmp_path / f"{count}.jsonl", count, seed=seed)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        encode(source, tmp_path / "out")
        found = mine_output("out", threshold=0.3)
        assert found == mine_output(str(tmp_path / "out"), threshold=0.3)
        assert {id for pair in found.pairs for id in (pair.a, pair.b)} <= {f"r{number}" for number in range(count)}
        assert found.pairs


pytest.importorskip("pyarrow")

HOSTILE = (None, -1, 10**30, float("nan"), "", "/dev/zero", "../../../etc/passwd", "x" * 5_000, [], [[]], {}, True)


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every value inside a value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple, new: Any) -> Any:
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


def test_what_is_written_is_read_back_whatever_its_text_holds():
    value = {"name": "문장 \udc80 \0", "numbers": [1, 0.1, 10**20], "none": None}
    assert read_checksummed(write_checksummed(value, indent=1), where="here", advice="") == value


def test_every_changed_value_is_seen(tmp_path, copy_output):
    output = copy_output(tmp_path / "out")
    for name in ("manifest.json", "receipts/part-00000001.json"):
        written = json.loads((output / name).read_bytes())
        for path in places(written):
            with pytest.raises(DamagedFile, match="here: is not what was written"):
                read_checksummed(json.dumps(replaced(written, path, "other")).encode(), where="here", advice="")


def test_a_manifest_without_its_checksum_is_an_older_one_and_with_a_strange_key_a_damaged_one(tmp_path, copy_output):
    output = copy_output(tmp_path / "out")
    written = json.loads((output / "manifest.json").read_bytes())
    checksum = written.pop(CHECKSUM)
    (output / "manifest.json").write_text(json.dumps(written), encoding="utf-8")
    assert open_output(output).rows == 90
    (output / "manifest.json").write_text(json.dumps({**written, "checksun": checksum}), encoding="utf-8")
    with pytest.raises(DamagedFile, match="other keys"):
        read_manifest(LocalStorage(output))


def test_a_damaged_receipt_is_told_and_its_shard_can_be_done_again(tmp_path, news, encode, copy_output):
    output = copy_output(tmp_path / "out")
    right = digest(output)
    manifest = read_checksummed((output / "manifest.json").read_bytes(), where="", advice="")
    (output / "manifest.json").write_bytes(write_checksummed({**manifest, "receipts": None}))
    receipt = output / "receipts" / "part-00000001.json"
    receipt.write_bytes(receipt.read_bytes().replace(b'"rows": ', b'"rows": 1'))
    with pytest.raises(DamagedFile, match=r"part-00000001.json: is not what was written.*\n.*--resume"):
        encode(news, output, resume=True)
    receipt.unlink()
    assert digest(encode(news, output, resume=True)) == right


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["short", "slow"])
def test_a_manifest_from_a_stranger_leads_nowhere(tmp_path, copy_output, every):
    """Its checksum is right: whoever writes one can count."""
    output = copy_output(tmp_path / "out")
    path = output / "manifest.json"
    written = read_checksummed(path.read_bytes(), where="", advice="")
    refused = 0
    for number, place in enumerate(places(written)):
        for new in HOSTILE[number % every :: every]:
            path.write_bytes(write_checksummed(replaced(written, place, new)))
            try:
                for block in open_output(output).blocks():
                    assert len(block.ids) < 50
            except MunjangError:
                refused += 1
    assert refused > 200 // every
