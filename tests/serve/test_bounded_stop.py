"""Whatever runs: a job is stopped within a second, a signal ends the server in time, and a killed server leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_load import until

from munjang import SentenceEncoder
from munjang.library.library import Library
from munjang.serve import upload_reader
from munjang.serve.service import PREFIX, Scratch
from munjang.serve.settings import ServerSettings
from munjang.serve.upload_reader import ReadingFailed, ReadOrder, UploadReader

ENDLESS = (sys.executable, "-c", "import re; re.match('(a*)*b', 'a' * 64)")
"""One call in C that takes years and holds the interpreter's lock."""

BUSY = 2.0
"""Seconds that a busy machine may add to the best of some tries."""
TRIES = 4


def uploaded(server: Running, body: bytes, name: str = "a.txt") -> dict[str, Any]:
    found: dict[str, Any] = server.call("POST", f"/api/libraries/made/upload?filename={name}", body).json
    return found


def job_state(server: Running, job: dict[str, Any]) -> str:
    return str(server.get(f"/api/jobs/{job['id']}").json["state"])


def stop(server: Running, job: dict[str, Any]) -> float:
    """Stop a job and return after how many seconds it has stopped."""
    start = time.monotonic()
    server.call("DELETE", f"/api/jobs/{job['id']}")
    until(lambda: job_state(server, job) == "stopped")
    return time.monotonic() - start


def in_time(seconds: float, measure: Callable[[], float]) -> bool:
    """Return whether one of a few tries took at most so many seconds: a busy machine is late once, what waits is late each time."""
    return any(measure() < seconds + BUSY for _ in range(TRIES))


def test_an_endless_parse_and_those_that_wait_behind_it_are_stopped_within_a_second(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(ServerSettings(data=tmp_path, analyser="bigrams", limits=LIMITS), model) as server:
        with monkeypatch.context() as patched:
            patched.setattr(upload_reader, "COMMAND", ENDLESS)

            def stop_two() -> float:
                first = uploaded(server, b"the cat\n")
                until(lambda: job_state(server, first) == "running")
                waiting = uploaded(server, b"the dog\n")
                return max(stop(server, waiting), stop(server, first))

            assert in_time(1.0, stop_two)
        last = uploaded(server, b"the sun\n")
        until(lambda: job_state(server, last) == "done")
        assert server.post("/api/libraries/made/search", {"query": "sun"}).json["hits"][0]["text"] == "the sun"


def test_an_upload_is_stopped_while_words_are_found_and_keeps_what_is_on_disk(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from munjang.library import indexing

    real = indexing.iterate_words

    def slowly(texts: Iterable[str], way: str) -> Iterator[list[str]]:
        for words in real(texts, way):
            time.sleep(0.005)
            yield words

    monkeypatch.setattr(indexing, "iterate_words", slowly)
    with running(ServerSettings(data=tmp_path, analyser="bigrams", limits=LIMITS), model) as server:
        kept: list[int] = []

        def stop_one() -> float:
            job = uploaded(server, "".join(f"text {len(kept)} {number}\n" for number in range(1_500)).encode())
            until(lambda: server.get(f"/api/jobs/{job['id']}").json["done"] > 0)
            seconds = stop(server, job)
            kept.append(server.get(f"/api/jobs/{job['id']}").json["done"])
            return seconds

        assert in_time(1.0, stop_one)
        assert all(0 < count < 1_500 for count in kept)
        assert server.get("/api/libraries/made").json["documents"] == sum(kept)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"memory_bytes": 400 * 2**20}, "memory"),
        ({"unpacked_bytes": 3}, "the file's texts have more than 3 characters, the limit"),
        ({"cpu_seconds": 1}, "its reader ended with code -"),
    ],
    ids=["memory", "texts", "time"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems bound processes differently")
def test_a_file_that_takes_too_much_of_something_is_refused(tmp_path: Path, order: dict[str, int], message: str) -> None:
    path = tmp_path / "large.jsonl"
    nested = '{"text": "rain", "list": [' + "[]," * 10_000_000 + "[]]}\n"  # 30 MB that are 700 in memory
    path.write_text('{"text": "rain"}\n' if "unpacked_bytes" in order else nested, encoding="utf-8")
    with UploadReader(ReadOrder(str(path), **order)) as reader, pytest.raises(ReadingFailed, match=message):
        reader.count()


SERVER = """
import ctypes, os, sys, time
from dataclasses import replace
from pathlib import Path
from munjang import SentenceEncoder
from munjang.limits import SERVE_LIMITS
from munjang.serve.running import run
from munjang.serve.service import Service
from munjang.serve.settings import ServerSettings

def endless(job):
    os.write(1, b"running\\n")
    while not job.request_work.dropped:
        time.sleep(600 if sys.argv[3] == "a sleep" else 0.01)
    ctypes.PyDLL(None).sleep(600)  # with the interpreter's lock

limits = replace(SERVE_LIMITS, stop_seconds=3.0)
settings = ServerSettings(port=0, data=Path(sys.argv[2]), analyser="bigrams", limits=limits)
service = Service(settings, SentenceEncoder.load(sys.argv[1]), None)
service.libraries.create("kept", model=service.encoder.name).add(["the cat"])
service.jobs.start("endless", "", endless)
run(service, ready=lambda address: os.write(1, f"{address}\\n".encode()))
"""


def start_endless(folder: Path, tmp_path: Path, wait: str = "a sleep") -> subprocess.Popen[str]:
    """Start a server with an endless job, and return it when it answers."""
    (tmp_path / "temporary").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder), str(tmp_path / "data"), wait],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:  # the job prints too, in its own time: a pipe closed before that would end it
        address, begun = sorted(process.stdout.readline() for _ in range(2))
    assert (address[:5], begun) == ("http:", "running\n"), process.poll()
    with urllib.request.urlopen(f"{address.strip()}/health", timeout=60) as answer:
        assert answer.status == 200
    return process


@pytest.mark.parametrize("wait", ["a sleep", "the interpreter's lock"])
def test_a_signal_ends_the_server_in_time_whatever_runs(tiny_bert_folder: Path, model: SentenceEncoder, tmp_path: Path, wait: str) -> None:
    tries = (tmp_path / str(number) for number in range(TRIES))

    def end_one() -> float:
        folder = next(tries)
        process = start_endless(tiny_bert_folder, folder, wait)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
        seconds = time.monotonic() - start
        with Library.open(folder / "data" / "kept.db", model, create=False) as library:
            assert library.info().documents == 1
            assert library.check() == []
        return seconds

    assert in_time(3.0, end_one)


def test_the_next_server_clears_what_a_killed_one_left_and_nothing_else(tiny_bert_folder: Path, tmp_path: Path) -> None:
    process = start_endless(tiny_bert_folder, tmp_path)
    temporary = tmp_path / "temporary"
    [left] = temporary.glob(f"{PREFIX}*[!k]")
    process.kill()
    process.wait()
    assert left.is_dir()
    foreign = temporary / f"{PREFIX}foreign"
    foreign.mkdir()
    live = Scratch(temporary)
    assert not left.exists()
    (live.folder / "upload.txt").write_text("the cat", encoding="utf-8")
    other = Scratch(temporary)
    assert (live.folder / "upload.txt").exists()
    assert foreign.exists()
    for each in (live, other):
        each.close()
    assert [path.name for path in temporary.glob(f"{PREFIX}*")] == [foreign.name]
