"""Many clients change one library: each waits for its turn, what is answered is on disk, and an error is told to the one whose it is."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.command import COMMAND
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_load import Gate, until

from munjang import Library, SentenceEncoder
from munjang.errors import NoSpace
from munjang.library.indexing import AddReport
from munjang.serve.settings import ServerSettings

NAME = "/api/libraries/notes"


@pytest.fixture
def notes(model: SentenceEncoder, tmp_path: Path) -> Iterator[Running]:
    with running(ServerSettings(data=tmp_path, analyser="bigrams", limits=replace(LIMITS, wait_seconds=20)), model) as server:
        assert server.post("/api/libraries", {"name": "notes", "records": []}).status == 201
        yield server


def test_eight_clients_add_at_once_and_all_of_it_is_there(notes: Running, model: SentenceEncoder, tmp_path: Path) -> None:
    def add(client: int) -> list[int]:
        return [notes.post(f"{NAME}/add", {"records": [{"id": f"{client}-{n}", "text": f"cat {n}"}]}).status for n in range(10)]

    with ThreadPoolExecutor(8) as pool:
        assert [status for each in pool.map(add, range(8)) for status in each] == [200] * 80
    with Library.open(tmp_path / "notes.db", model) as library:
        assert {each.id for each in library.get([f"{client}-{n}" for client in range(8) for n in range(10)])} == {
            f"{client}-{n}" for client in range(8) for n in range(10)
        }


@pytest.fixture
def held(notes: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, list[list[int]]]]:
    """Commits wait for the event, and are noted by the number of their callers' records."""
    free, commits = threading.Event(), []
    add, add_groups = Library.add, Library.add_groups

    def one(self: Library, records: Any, **options: Any) -> AddReport:
        commits.append([len(records)])
        assert free.wait(20)
        return add(self, records, **options)

    def several(self: Library, groups: Any) -> list[AddReport]:
        commits.append([len(records) for records in groups])
        return add_groups(self, groups)

    monkeypatch.setattr(Library, "add", one)
    monkeypatch.setattr(Library, "add_groups", several)
    yield free, commits
    free.set()


def test_small_adds_that_wait_together_are_one_commit_and_each_has_its_own_report(notes: Running, held: Any) -> None:
    free, commits = held
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(notes.post, f"{NAME}/add", {"records": [{"id": "a", "text": "cat"}]})
        until(lambda: commits == [[1]])
        records = [[{"id": "b", "text": "dog"}, {"id": "c", "text": "bird"}], [{"id": "a", "text": "cat"}], [{"id": "d", "text": "fish"}]]
        others = [pool.submit(notes.post, f"{NAME}/add", {"records": each}) for each in records]
        until(lambda: _waiting(notes) == 3)
        free.set()
        assert first.result(20).json["added"] == 1
        reports = [each.result(20).json for each in others]
    assert [(report["added"], report["unchanged"], report["documents"]) for report in reports] == [(2, 0, 4), (0, 1, 4), (1, 0, 4)]
    assert len(commits) == 2
    assert sorted(commits[1]) == [1, 1, 2]


def test_an_error_is_told_to_the_one_whose_it_is(notes: Running, held: Any) -> None:
    free, commits = held
    bad = {"records": [{"id": "x" * 2_000, "text": "a name that is too long"}]}
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(notes.post, f"{NAME}/add", {"records": [{"id": "a", "text": "cat"}]})
        until(lambda: commits == [[1]])
        good = [pool.submit(notes.post, f"{NAME}/add", {"records": [{"id": f"{n}", "text": f"dog {n}"}]}) for n in range(2)]
        wrong = pool.submit(notes.post, f"{NAME}/add", bad)
        until(lambda: _waiting(notes) == 3)
        free.set()
        assert [each.result(20).status for each in (first, *good)] == [200] * 3
        assert wrong.result(20).status == 422
    assert notes.get(NAME).json["documents"] == 3


def test_where_the_disk_is_full_nobody_is_told_otherwise(notes: Running, held: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    free, commits = held

    def full(self: Any, changes: Any, **_: Any) -> None:
        raise NoSpace("no space left")

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(notes.post, f"{NAME}/add", {"records": [{"text": "cat"}]})
        until(lambda: commits == [[1]])
        others = [pool.submit(notes.post, f"{NAME}/add", {"records": [{"text": f"dog {n}"}]}) for n in range(3)]
        until(lambda: _waiting(notes) == 3)
        monkeypatch.setattr("munjang.library.sqlite_store.SqliteStore.put", full)
        free.set()
        assert [each.result(20).status for each in (first, *others)] == [507] * 4
    assert notes.get(NAME).json["documents"] == 0


def test_changes_that_are_no_adds_wait_for_their_turn_too(notes: Running, held: Any) -> None:
    free, commits = held
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(notes.post, f"{NAME}/add", {"records": [{"id": "a", "text": "cat"}]})
        until(lambda: commits == [[1]])
        removed = pool.submit(notes.post, f"{NAME}/remove", {"ids": ["a"]})
        until(lambda: _waiting(notes) == 1)
        gone = pool.submit(notes.call, "DELETE", NAME)
        until(lambda: _waiting(notes) == 2)
        free.set()
        assert first.result(20).status == 200
        assert removed.result(20).json == {"removed": 1}
        assert gone.result(20).json["documents"] == 0


def test_another_program_that_writes_is_waited_for(notes: Running, model: SentenceEncoder, tmp_path: Path) -> None:
    with Library.open(tmp_path / "notes.db", model) as other, ThreadPoolExecutor(1) as pool:
        with other.store.writer("test"):
            waiting = pool.submit(notes.post, f"{NAME}/add", {"records": [{"text": "cat"}]})
            until(lambda: notes.service.writes._waiting)
            assert not waiting.done()
        assert waiting.result(20).status == 200


def test_who_waits_too_long_is_refused_and_nothing_of_it_is_written(model: SentenceEncoder, tmp_path: Path) -> None:
    limits = replace(LIMITS, wait_seconds=0.3)
    with running(ServerSettings(data=tmp_path, analyser="bigrams", limits=limits), model) as server, ThreadPoolExecutor(2) as pool:
        server.post("/api/libraries", {"name": "notes", "records": []})
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        first = pool.submit(server.post, f"{NAME}/add", {"records": [{"id": "a", "text": "cat"}]})
        until(lambda: gate.waiting)
        late = server.post(f"{NAME}/add", {"records": [{"id": "b", "text": "dog"}]})
        assert late.status == 429
        assert "0.3 s, the limit" in late.json["error"]["message"]
        gate.open.set()
        assert first.result(20).status == 200
        assert server.get(NAME).json["documents"] == 1


def test_a_file_that_is_added_lets_others_have_their_turn(notes: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.serve.library_writes.GROUP_RECORDS", 5)
    gate = Gate(notes.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
    lines = "\n".join(f"line {number}" for number in range(50)).encode()
    job = notes.call("POST", f"{NAME}/upload?filename=lines.txt", lines, content_type="text/plain").json
    until(lambda: gate.waiting)
    with ThreadPoolExecutor(1) as pool:
        added = pool.submit(notes.post, f"{NAME}/add", {"records": [{"id": "mine", "text": "cat"}]})
        until(lambda: notes.service.writes._waiting)
        gate.open.set()
        assert added.result(20).json["documents"] < 51
    until(lambda: notes.get(f"/api/jobs/{job['id']}").json["state"] == "done")
    assert notes.get(f"/api/jobs/{job['id']}").json["result"]["added"] == 50
    assert notes.get(NAME).json["documents"] == 51


def test_what_was_acknowledged_to_eight_writers_survives_a_kill(tiny_bert_folder: Path, model: SentenceEncoder, tmp_path: Path) -> None:
    with Library.open(tmp_path / "notes.db", model, analyser="bigrams"):
        pass
    options = ["--model", str(tiny_bert_folder), "--port", "0", "--json", "--access-log", "none", "--library", str(tmp_path / "notes.db")]
    command = [sys.executable, "-c", COMMAND, "serve", *options, "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(json.loads(process.stdout.readline())["address"].rpartition(":")[2])
        acknowledged: list[str] = []

        def add(client: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with suppress(OSError, http.client.HTTPException):  # the server is gone
                for number in range(100):
                    body = json.dumps({"records": [{"id": f"{client}-{number}", "text": f"cat {client} {number}"}]})
                    connection.request("POST", f"{NAME}/add", body, {"content-type": "application/json"})
                    response = connection.getresponse()
                    response.read()
                    assert response.status == 200
                    acknowledged.append(f"{client}-{number}")

        with ThreadPoolExecutor(8) as pool:
            writers = [pool.submit(add, client) for client in range(8)]
            until(lambda: len(acknowledged) >= 60)
            process.kill()
            for writer in writers:
                writer.result(30)
    with Library.open(tmp_path / "notes.db", model) as library:
        assert [each.id for each in library.get(acknowledged)] == acknowledged
        assert library.check() == []


def _waiting(server: Running) -> int:
    return sum(len(own) for clients in server.service.writes._waiting.values() for own in clients.values())
