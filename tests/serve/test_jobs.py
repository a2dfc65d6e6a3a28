"""Jobs: how many may wait, how many are remembered, and what is left of one that is stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, running
from tests.serve.test_load import until

from munjang import SentenceEncoder
from munjang.serve.errors import Overloaded, Refusal
from munjang.serve.jobs import REMEMBERED, Job, Jobs
from munjang.serve.settings import ServerSettings


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(limit=2)
    yield made
    made.close()


def nothing(_job: Job) -> dict[str, Any]:
    return {}


def ended(job: Job) -> str:
    until(lambda: job.state not in ("waiting", "running"))
    return job.state


def held(jobs: Jobs) -> tuple[Job, threading.Event]:
    """Start a job that runs until the event is set, and asks at every step whether it is still wanted."""
    free = threading.Event()

    def work(job: Job) -> dict[str, Any]:
        while not free.wait(0.005):
            job.advance(1)
        return {"steps": job.done}

    job = jobs.start("upload", "news", work)
    until(lambda: job.state == "running")
    return job, free


def test_more_jobs_than_may_wait_are_refused_with_a_time_to_come_back(jobs: Jobs) -> None:
    _, free = held(jobs)
    waiting = [jobs.start("upload", "news", nothing) for _ in range(2)]
    with pytest.raises(Overloaded, match="2 uploads are waiting, the limit\n  try again in 10 s") as told:
        jobs.start("upload", "news", nothing)
    assert told.value.retry_after == 10
    free.set()
    assert [ended(job) for job in waiting] == ["done", "done"]
    assert ended(jobs.start("upload", "news", nothing)) == "done"


def test_a_job_that_runs_stops_at_its_next_step(jobs: Jobs) -> None:
    job, _ = held(jobs)
    job.request_work.drop()
    assert ended(job) == "stopped"
    assert job.result is None


def test_a_job_that_is_stopped_while_it_waits_never_runs_and_is_cleaned_up(jobs: Jobs) -> None:
    seen: list[str] = []
    _, free = held(jobs)
    job = jobs.start("upload", "news", lambda _job: {"ran": seen.append("ran")}, clean_up=lambda: seen.append("cleaned up"))
    job.request_work.drop()
    free.set()
    assert ended(job) == "stopped"
    assert seen == ["cleaned up"]


def test_the_oldest_finished_jobs_are_forgotten_and_running_ones_never(jobs: Jobs) -> None:
    first = jobs.start("upload", "news", nothing)
    assert ended(first) == "done"
    for _ in range(REMEMBERED - 1):
        last = jobs.start("upload", "news", nothing)
        assert ended(last) == "done"
    assert jobs.get(first.id) is first
    running_now, free = held(jobs)
    with pytest.raises(Refusal, match="there is no such job"):
        jobs.get(first.id)
    assert jobs.get(last.id) is last
    assert jobs.get(running_now.id) is running_now
    free.set()


def test_an_upload_that_is_stopped_while_it_waits_leaves_no_file(model: SentenceEncoder, tmp_path: Any) -> None:
    with running(ServerSettings(data=tmp_path, limits=LIMITS), model) as server:
        _, free = held(server.service.jobs)
        job = server.call("POST", "/api/libraries/trains/upload?filename=trains.txt", b"the train\n").json
        assert list(server.service.upload_folder().glob("*.txt"))
        assert server.call("DELETE", f"/api/jobs/{job['id']}").status == 200
        free.set()
        until(lambda: server.get(f"/api/jobs/{job['id']}").json["state"] == "stopped")
        assert not list(server.service.upload_folder().glob("*.txt"))
        assert server.get("/api/libraries/trains").status == 404
