"""Input and output in S3, as a local server (moto) plays it: whole jobs, shares at once, a share that is killed.

Skipped without moto and s3fs; `./run clusters` makes an environment that has them.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.bulk.conftest import digest, write_jsonl
from tests.bulk.test_share import start_share, wait_for

from munjang.bulk.output import open_output
from munjang.bulk.run import encode_bulk, finish_bulk

pytest.importorskip("pyarrow")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
moto = pytest.importorskip("moto.server", reason="moto is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket on this machine, which the environment says is Amazon's."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "no", "SECRET_ACCESS_KEY": "no", "REGION": "a"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.makedirs("texts", exist_ok=True)  # moto keeps buckets as long as its process lives
    yield system
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def fetch(bucket, name: str, to: Path) -> Path:
    bucket.get(f"texts/{name}/", str(to), recursive=True)
    return to


def test_a_whole_job_from_s3_to_s3_has_the_bytes_of_a_folder(tmp_path, news, tiny_bert_folder, bucket, copy_output):
    bucket.put(str(news), "texts/news.jsonl")
    report = encode_bulk(["s3://texts/*.jsonl"], "s3://texts/out", model=tiny_bert_folder, shard_rows=20, keep_text=True, workers=2)
    assert (report.rows, report.rejected) == (90, 3)
    assert open_output("s3://texts/out").check() == []
    there, here = fetch(bucket, "out", tmp_path / "there"), copy_output(tmp_path / "here")
    assert {**digest(there), "rejected.jsonl": ""} == {**digest(here), "rejected.jsonl": ""}  # which names the files it read


def test_shares_in_s3_start_at_once_are_killed_and_started_again(tmp_path, encode, tiny_bert_folder, bucket):
    source = write_jsonl(tmp_path / "news.jsonl", 400)
    first, second = (start_share(source, "s3://texts/shares", tiny_bert_folder, share, shard_rows=10) for share in ("1/2", "2/2"))
    end = time.monotonic() + 120
    while len(bucket.glob("texts/shares/receipts/*")) < 3 and time.monotonic() < end:
        bucket.invalidate_cache()
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    wait_for(second)
    assert set(finish_bulk("s3://texts/shares").missing_shares) <= {"1/2"}
    wait_for(start_share(source, "s3://texts/shares", tiny_bert_folder, "1/2", shard_rows=10))
    assert not finish_bulk("s3://texts/shares").missing
    assert digest(fetch(bucket, "shares", tmp_path / "there")) == digest(encode(source, tmp_path / "here", shard_rows=10))
