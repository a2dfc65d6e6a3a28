"""Jobs done in shares: any order, at once, twice, killed; the end says what is missing, and the bytes are those of one run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.bulk.conftest import digest, write_jsonl

from munjang.bulk.job import BulkSettings, ShardSpec
from munjang.bulk.output import begin, open_output
from munjang.bulk.plan import plan_shards
from munjang.bulk.run import describe, encode_bulk, finish_bulk
from munjang.bulk.share import list_shares, read_share
from munjang.bulk.storage import RemoteStorage, open_storage
from munjang.errors import InputError, UsageError

pytest.importorskip("pyarrow")


def start_share(source: Path, output: str, model: Path, share: str, *, shard_rows: int = 20) -> subprocess.Popen[str]:
    """Start a share as an array job does."""
    command = [sys.executable, "-m", "munjang.cli.main", "bulk", str(source), "-o", output, "--model", str(model), "--share", share]
    command += ["--shard-rows", str(shard_rows), "--keep-text", "--workers", "1", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(*runs: subprocess.Popen[str]) -> None:
    for run in runs:
        _, messages = run.communicate(timeout=300)
        assert run.returncode == 0, messages


@pytest.mark.parametrize("count", [1, 3, 7])
def test_every_shard_is_in_exactly_one_share(count):
    specs = [ShardSpec(number, 0, number, number + 1) for number in range(20)]
    shares = [read_share(f"{number}/{count}").select(specs) for number in range(1, count + 1)]
    assert sorted((spec for share in shares for spec in share), key=lambda spec: spec.number) == specs
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "1/0", "-1/2", "1/2/3", "a/b", "¹/2"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(UsageError, match="expected one from 1/N to N/N"):
        read_share(text)


def test_shares_in_any_order_make_the_bytes_of_one_run_and_the_end_says_what_is_missing(tmp_path, news, encode, copy_output):
    here = copy_output(tmp_path / "here")
    there = tmp_path / "there"
    encode(news, there, share="2/2")
    report = finish_bulk(there)
    assert (report.missing, report.missing_shares) == ((0, 2, 4), ("1/2",))
    with pytest.raises(InputError, match="its job is not done"):
        open_output(there)
    encode(news, there, share="2/2")  # again, as a queue may start it
    encode(news, there, share="1/2")
    assert not finish_bulk(there).missing
    assert digest(there) == digest(here)
    assert open_output(there).check() == []
    encode(news, there, share="1/2")  # too late, and no harm
    assert finish_bulk(there).rows == open_output(there).rows == 90


def test_a_share_with_other_options_than_the_first_is_refused(tmp_path, news, encode):
    encode(news, tmp_path / "out", share="1/2")
    with pytest.raises(UsageError, match="precision: 'float32' then, 'int8' now"):
        encode(news, tmp_path / "out", share="2/2", precision="int8")


def test_a_share_finds_out_that_another_began_something_else_at_the_same_moment(tmp_path, news, tiny_bert_folder):
    """An object store has no lock; the last one that writes wins, and the others say so."""
    place = f"local://{tmp_path}/out"

    def watch(job, specs):
        other = describe([str(news)], tiny_bert_folder, BulkSettings(shard_rows=20, precision="int8"))
        begin(open_storage(place), other, plan_shards(other.inputs, other.settings))
        return lambda spec, receipt, before: None

    with pytest.raises(UsageError, match="precision: 'int8' then, 'float32' now"):
        encode_bulk([news], place, model=tiny_bert_folder, shard_rows=20, workers=1, share="1/2", watch=watch)


def test_a_job_that_was_begun_in_shares_is_ended_by_resume_too(tmp_path, news, encode, copy_output):
    encode(news, tmp_path / "out", share="3/3")
    half = tmp_path / "out" / "vectors" / ".part-00000000.parquet.aa.part"
    half.write_bytes(b"half")
    encode(news, tmp_path / "out", resume=True)
    assert digest(tmp_path / "out") == digest(copy_output(tmp_path / "here"))
    assert not half.exists()


def test_without_a_job_there_is_nothing_to_end(tmp_path):
    with pytest.raises(InputError, match=r"holds no manifest.json"):
        finish_bulk(tmp_path)


def test_missing_shares_are_counted_as_they_were_started_last(tmp_path):
    storage = open_storage(str(tmp_path))
    assert list_shares(storage, [1, 2]) == []
    for mark in ("1-of-4", "3-of-8", "notes.txt"):
        storage.write(f"shares/{mark}", b"")
    assert list_shares(storage, [1, 2, 10]) == ["2/8", "3/8"]


def test_the_commands_of_an_array_job(tmp_path, news, tiny_bert_folder, copy_output, capsys):
    from munjang.cli.main import run

    output = str(tmp_path / "out")
    given = ["bulk", str(news), "-o", output, "--model", str(tiny_bert_folder), "--shard-rows", "20", "--keep-text", "--workers", "1"]
    assert run([*given, "--share", "1/2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shards"] == 3
    assert run(["bulk", "--finish", "-o", output, "--json"]) == 1
    told = capsys.readouterr()
    assert (json.loads(told.out)["missing"], json.loads(told.out)["missing_shares"]) == ([1, 3], ["2/2"])
    assert "2 shards missing" in told.err
    assert run(["bulk", "--finish", "-o", output]) == 1
    assert "1, 3" in capsys.readouterr().out
    assert run([*given, "--share", "2/2"]) == 0
    assert run([*given, "--share", "6/6"]) == 0  # no shard is left for it
    assert run(["bulk", "--finish", "-o", output, "--merge", str(tmp_path / "all.parquet"), "--json"]) == 0
    assert digest(tmp_path / "out") == digest(copy_output(tmp_path / "here"))
    assert run([*given, "--share", "1/2", "--merge", "all.npy"]) == 2
    assert run(["bulk", str(news), "--finish", "-o", output]) == 2
    assert run(["bulk", "-o", output]) == 2


@pytest.mark.parametrize("address", ["", "local://"], ids=["folder", "object store"])
def test_shares_that_start_at_once_and_twice_do_one_job(tmp_path, news, tiny_bert_folder, copy_output, address):
    """The address is one of fsspec's, read and written as an object store is: no locks, no renaming."""
    pytest.importorskip("fsspec")
    output = f"{address}{tmp_path}/out"
    wait_for(*(start_share(news, output, tiny_bert_folder, share) for share in ("1/2", "2/2", "1/2")))
    assert not finish_bulk(output).missing
    assert digest(tmp_path / "out") == digest(copy_output(tmp_path / "here"))
    assert isinstance(open_output(output).storage, RemoteStorage) == bool(address)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_shares_survive_50_kills(tmp_path, encode, tiny_bert_folder):
    source = write_jsonl(tmp_path / "news.jsonl", 6_000)
    clean = encode(source, tmp_path / "clean", shard_rows=10)
    output, receipts = tmp_path / "out", tmp_path / "out" / "receipts"

    def start(place: int) -> subprocess.Popen[str]:
        return start_share(source, str(output), tiny_bert_folder, f"{place}/2", shard_rows=10)

    def done() -> int:
        return len(list(receipts.glob("part-*.json"))) if receipts.is_dir() else 0

    runs, kills = {place: start(place) for place in (1, 2)}, 0
    for number in range(50):
        place, before = number % 2 + 1, done()
        end = time.monotonic() + 120
        while runs[place].poll() is None and done() < before + 3 and time.monotonic() < end:
            time.sleep(0.02)
        if runs[place].poll() is None:
            runs[place].send_signal(signal.SIGKILL)
            kills += 1
        runs[place].communicate()
        runs[place] = start(place)
    wait_for(*runs.values())
    assert kills >= 30  # a share may be done before its turn comes
    assert not finish_bulk(output).missing
    assert digest(output) == digest(clean)
    assert [id for block in open_output(output).blocks() for id in block.ids] == [f"r{number}" for number in range(6_000)]
    assert not list(output.glob("**/.*.part"))
