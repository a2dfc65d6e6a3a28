"""One writer and many readers, in processes of their own."""

from __future__ import annotations

import json
import time

import pytest

from munjang.errors import Busy


def run_readers(worker, start_worker, path, *, readers: int, seconds: float) -> list[dict]:
    """Write eight documents together, again and again, while others read."""
    with worker.opened(path) as library:
        library.add([worker.record(str(i), 1) for i in range(8)])
        processes = [start_worker("read", path, seconds) for _ in range(readers)]
        version = 1
        while any(process.poll() is None for process in processes):
            version += 1
            library.add([worker.record(str(i), version) for i in range(8)])
            if version % 10 == 0:
                library.compact()
            time.sleep(0.005)
        assert library.check() == []
    reports = []
    for process in processes:
        out, errors = process.communicate()
        assert not errors, errors
        reports.append(json.loads(out))
    return reports


def check_reports(reports: list[dict]) -> None:
    for report in reports:
        assert report["wrong"] == []
        assert report["searches"] > 5


def test_readers_see_whole_commits_while_one_writes(worker, start_worker, tmp_path):
    check_reports(run_readers(worker, start_worker, tmp_path / "a.db", readers=3, seconds=3))


@pytest.mark.slow
def test_eight_readers_see_whole_commits_for_twenty_seconds(worker, start_worker, tmp_path):
    check_reports(run_readers(worker, start_worker, tmp_path / "a.db", readers=8, seconds=20))


def test_the_second_writer_is_told_the_first_ones_process(worker, start_worker, tmp_path):
    path = tmp_path / "a.db"
    with worker.opened(path) as library:
        process = start_worker("hold", path, 30)
        process.stdout.readline()
        with pytest.raises(Busy) as error:
            library.add([worker.record("x", 1)], patience=0.2)
        assert f"process {process.pid} ('hold', since '20" in str(error.value)
        assert library.search("searching still works") == []
        process.kill()
        process.wait()
        library.add([worker.record("x", 1)])


def test_two_processes_may_make_the_same_library_at_once(worker, start_worker, tmp_path):
    path = tmp_path / "a.db"
    processes = [start_worker("read", path, 0.2) for _ in range(3)]
    for process in processes:
        out, errors = process.communicate()
        assert not errors, errors
        assert json.loads(out)["wrong"] == []
    with worker.opened(path) as library:
        assert library.check() == []


def add_together(worker, start_worker, place: str, *, writers: int, adds: int, kills: int) -> list[float]:
    """Let processes add to one library at once and kill some of them; return how long each add took, when all that was told is there."""
    worker.opened(place).close()
    processes = [start_worker("add", place, adds) for _ in range(writers)]
    lines = [[process.stdout.readline()] for process in processes]
    for process, told in zip(processes[:kills], lines, strict=False):
        while len(told) < adds // 2:
            told.append(process.stdout.readline())
        process.kill()
    for process, told in zip(processes, lines, strict=True):
        out = process.stdout.read()  # what readline has read ahead, too
        errors = process.stderr.read()
        assert not errors, errors
        told += [line for line in out.splitlines(keepends=True) if line.endswith("\n")]
    facts = [[json.loads(line) for line in told] for told in lines]
    assert [len(told) for told in facts[kills:]] == [adds] * (writers - kills)
    acknowledged = [fact["added"] for told in facts for fact in told]
    with worker.opened(place) as library:
        assert {document.id for document in library.get(acknowledged)} == set(acknowledged)
        assert library.info().documents - len(acknowledged) in range(kills + 1)  # a killed one may have written what it did not tell
        assert library.check() == []
    return [fact["waited"] for told in facts for fact in told]


def test_writers_beside_one_another_are_all_served_and_kills_lose_nothing(worker, start_worker, tmp_path):
    add_together(worker, start_worker, str(tmp_path / "a.db"), writers=4, adds=10, kills=1)


def test_writers_to_postgres_are_all_served_and_kills_lose_nothing(worker, start_worker, postgres):
    add_together(worker, start_worker, f"{postgres}#together", writers=4, adds=10, kills=1)


@pytest.mark.slow
def test_eight_writers_add_a_hundred_documents_each(worker, start_worker, tmp_path, postgres):
    for place in (str(tmp_path / "a.db"), f"{postgres}#eight"):
        waited = sorted(add_together(worker, start_worker, place, writers=8, adds=100, kills=2))
        print(f"{place[:10]}: median {waited[len(waited) // 2]:.3f} s, slowest {waited[-1]:.3f} s")
