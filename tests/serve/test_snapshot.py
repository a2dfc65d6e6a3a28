"""A copy of a library that others write to: it passes every check and holds all that was acknowledged before it was asked for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.serve.command import COMMAND
from tests.serve.conftest import LIMITS, Running, running

from munjang import SentenceEncoder
from munjang.library.library import Library
from munjang.serve.settings import ServerSettings


class Writer(threading.Thread):
    """Adds numbered documents, one request each, and counts those that were acknowledged."""

    def __init__(self, server: Running, path: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged, self.stop = 0, threading.Event()
        self._server, self._path = server, path

    def run(self) -> None:
        while not self.stop.is_set():
            record = {"id": str(self.acknowledged), "text": f"the rain {self.acknowledged}"}
            if self._server.post(self._path, {"records": [record]}).status == 200:
                self.acknowledged += 1


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what follows an answer."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def ids_in(path: Path) -> list[int]:
    """Return the ids of a library that passes its check, in order."""
    with Library.open(path, create=False) as library:
        assert library.check() == []
        return sorted(int(entry.document.id) for block in library.store.entries() for entry in block)


def test_a_copy_of_a_live_library_is_whole_and_holds_a_prefix_of_what_was_acknowledged(server: Running, tmp_path: Path) -> None:
    assert server.post("/api/libraries", {"name": "live", "records": [{"id": "0", "text": "the rain 0"}]}).status == 201
    writer = Writer(server, "/api/libraries/live/add")
    writer.start()
    copies = []
    try:
        wait_until(lambda: writer.acknowledged >= 5)
        for number in range(4):
            before = writer.acknowledged
            answer = server.get("/api/libraries/live/snapshot")
            assert answer.status == 200, answer.body
            assert answer.headers["content-type"] == "application/vnd.sqlite3"
            assert int(answer.headers["content-length"]) == len(answer.body)
            assert 'filename="live.db"' in answer.headers["content-disposition"]
            copies.append((before, tmp_path / f"{number}.db", writer.acknowledged))
            copies[-1][1].write_bytes(answer.body)
    finally:
        writer.stop.set()
        writer.join(60)
    for before, path, after in copies:
        found = ids_in(path)
        assert found == list(range(len(found)))  # no gap: one commit, not a mixture of two
        assert before <= len(found) <= after + 1
    wait_until(lambda: not list(server.service.upload_folder().glob("*/copy.db")))


def test_the_command_copies_a_live_library_too(server: Running, tmp_path: Path) -> None:
    assert server.post("/api/libraries", {"name": "busy", "records": [{"id": "0", "text": "the rain 0"}]}).status == 201
    assert server.service.settings.data is not None
    source, target = server.service.settings.data / "busy.db", tmp_path / "copy.db"
    writer = Writer(server, "/api/libraries/busy/add")
    writer.start()
    try:
        wait_until(lambda: writer.acknowledged >= 5)
        before = writer.acknowledged
        done = subprocess.run([sys.executable, "-c", COMMAND, "copy", str(source), str(target)], capture_output=True, text=True)
        after = writer.acknowledged
    finally:
        writer.stop.set()
        writer.join(60)
    assert done.returncode == 0, done.stderr
    checked = subprocess.run([sys.executable, "-c", COMMAND, "check", str(target)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    found = ids_in(target)
    assert found == list(range(len(found)))
    assert before <= len(found) <= after + 1
    again = subprocess.run([sys.executable, "-c", COMMAND, "copy", str(source), str(target)], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr  # what came since
    assert len(ids_in(target)) == writer.acknowledged
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_copies_are_bounded_and_missing_libraries_have_none(server: Running, model: SentenceEncoder) -> None:
    from munjang.serve.service import SNAPSHOTS

    assert server.get("/api/libraries/nothing/snapshot").status == 404
    with running(ServerSettings(limits=LIMITS, analyser="bigrams", read_only=True), model) as other:
        assert other.get("/api/libraries/sample/snapshot").status == 200  # reading is no change
        wait_until(lambda: not list(other.service.upload_folder().glob("*/copy.db")))
        slots = [other.service.take_snapshot_slot() for _ in range(SNAPSHOTS)]
        refused = other.get("/api/libraries/sample/snapshot")
        assert (refused.status, refused.headers["retry-after"]) == (429, "10")
        slots[0]()
        assert other.get("/api/libraries/sample/snapshot").status == 200


def test_a_copy_is_another_library(server: Running, tmp_path: Path) -> None:
    server.post("/api/libraries", {"name": "twin", "records": [{"id": "0", "text": "the rain"}]})
    path = tmp_path / "twin.db"
    path.write_bytes(server.get("/api/libraries/twin/snapshot").body)
    with Library.open(path, create=False) as copy:
        assert copy.store.uuid != server.service.libraries.get("twin").store.uuid
    with pytest.raises(Exception, match="there already"):
        server.service.libraries.get("twin").store.back_up(path)  # type: ignore[attr-defined]
