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
            library.add([worker.record("x", 1)])
        assert f"process {process.pid} ('hold', since '20" in str(error.value)
        assert library.search("searching works meanwhile") == []
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
