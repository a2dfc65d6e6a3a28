"""kill -9 at any moment: what was acknowledged is there, what was not is there whole or not at all."""

from __future__ import annotations

import json
import random
import time

import pytest


class Expected:
    """What the library must hold after all acknowledged operations, and what the one that was under way may have changed."""

    def __init__(self) -> None:
        self.documents: dict[str, int] = {}
        self.acknowledged = 0

    def follow(self, lines: list[dict]) -> dict | None:
        """Apply what was acknowledged; return what was begun and not ended."""
        begun = None
        for line in lines:
            if "begin" in line:
                begun = line
            else:
                self._apply(begun)
                self.acknowledged += 1
                begun = None
        return begun

    def _apply(self, line: dict) -> None:
        match line["begin"]:
            case "add":
                self.documents |= dict.fromkeys(line["ids"], line["version"])
            case "update":
                self.documents |= {id: line["version"] for id in line["ids"] if id in self.documents}
            case "remove":
                self.documents = {id: version for id, version in self.documents.items() if id not in line["ids"][:5]}

    def compare(self, found: dict[str, int], begun: dict | None) -> None:
        """Refuse anything but the acknowledged state, with the unfinished operation's documents old or new."""
        touched = set(begun["ids"]) if begun else set()
        for id in set(found) | set(self.documents):
            if found.get(id) == self.documents.get(id):
                continue
            assert id in touched, f"document {id}: acknowledged {self.documents.get(id)}, found {found.get(id)}"
            assert found.get(id) in ((None,) if begun["begin"] == "remove" else (begun["version"],))
        self.documents = dict(found)


def complete_lines(raw: str) -> list[dict]:
    return [json.loads(line) for line in raw.splitlines(keepends=True) if line.endswith("\n")]


def kill_again_and_again(worker, start_worker, path, *, kills: int) -> Expected:
    rng, expected = random.Random(kills), Expected()
    for turn in range(kills):
        process = start_worker("write", path, turn + 1)
        # counted in operations, so that it dies while it works on any machine; then anywhere in the next ones
        told = "".join(process.stdout.readline() for _ in range(rng.randint(4, 12)))
        time.sleep(rng.uniform(0.0, 0.05))
        process.kill()
        process.wait()
        rest, errors = process.stdout.read(), process.stderr.read()  # communicate() would pass over what readline() has buffered
        assert not errors, errors
        begun = expected.follow(complete_lines(told + rest))
        with worker.opened(path) as library:
            assert library.check() == []
            documents = library.get(map(str, range(60)))
            for document in documents:
                assert f"document {document.id} version {document.metadata['version']} " in document.text
            expected.compare({document.id: document.metadata["version"] for document in documents}, begun)
            hits = library.search("document", k=60)
            assert {hit.id for hit in hits} == set(expected.documents)
            assert library.info().documents == len(expected.documents)
    return expected


def test_five_kills_of_whole_processes_lose_nothing_that_was_acknowledged(worker, start_worker, tmp_path):
    """tests/trust/test_kills.py kills forked ones, hundreds of times."""
    expected = kill_again_and_again(worker, start_worker, tmp_path / "a.db", kills=5)
    assert expected.acknowledged > 5


def test_a_killed_add_is_continued_by_the_same_command(worker, start_worker, tmp_path):
    records = [worker.record(str(i), 1) for i in range(40)]
    with worker.opened(tmp_path / "a.db") as library:

        class Stop(BaseException):
            pass

        told = []

        def progress(count: int) -> None:
            told.extend([count] if count else [])  # 0 is told in between, while nothing is on disk
            if len(told) == 3:
                raise Stop

        with pytest.raises(Stop):
            library.add(records, progress=progress)
        assert library.info().documents == 24
        report = library.add(records)
        assert (report.unchanged, report.added) == (24, 16)
