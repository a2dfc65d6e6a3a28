"""Work that takes longer than a client wants to hold its breath: started now, asked about later.

One job runs at a time, a few may wait, and the last hundred are remembered. A job that is stopped keeps what it has done so far: one that
waits never begins, one that runs ends at its next step, of which there are many a second, and a process that it waits for is killed.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from munjang.errors import MunjangError
from munjang.serve.errors import Disconnected, Overloaded, Refusal
from munjang.serve.work_item import REQUEST_WORK, RequestWork

REMEMBERED = 100

State = Literal["waiting", "running", "done", "failed", "stopped"]


class Stopped(Exception):
    """The job was asked to stop."""


@dataclass(eq=False)
class Job:
    """What is known about one piece of work."""

    id: str
    kind: str
    library: str
    state: State = "waiting"
    done: int = 0
    total: int | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    request_work: RequestWork = field(default_factory=lambda: RequestWork(patient=True))
    interrupt: Callable[[], None] = lambda: None
    """Ends what the job waits for; called from another thread."""
    future: Future[None] | None = None
    clean_up: Callable[[], None] = lambda: None

    def advance(self, count: int) -> None:
        """Count what is done; raises Stopped where nobody wants the rest."""
        self.done += count
        if self.request_work.dropped:
            raise Stopped

    def stop(self) -> None:
        """Let it end within a second; from any thread."""
        self.request_work.drop()
        self.interrupt()
        if self.future is not None and self.future.cancel():  # it has not begun
            self.state = "stopped"
            self.clean_up()

    def as_json(self) -> dict[str, Any]:
        """Return what clients may know."""
        names = ("id", "kind", "library", "state", "done", "total", "result", "error")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """Runs jobs in a thread of its own."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="munjang-job")

    def start(self, kind: str, library: str, work: Callable[[Job], dict[str, Any]], *, clean_up: Callable[[], None] = lambda: None) -> Job:
        """Queue work and return its job at once, or refuse when too many wait; `clean_up` follows even if the job never runs."""
        with self._lock:
            self._check_room()
            job = Job(secrets.token_hex(8), kind, library, clean_up=clean_up)
            self._jobs[job.id] = job
            finished = [id for id, each in self._jobs.items() if each.state not in ("waiting", "running")]
            for id in finished[: max(len(self._jobs) - REMEMBERED, 0)]:
                del self._jobs[id]
            job.future = self._pool.submit(_run, job, work)
        return job

    def check_room(self) -> None:
        """Refuse when too many jobs wait."""
        with self._lock:
            self._check_room()

    def _check_room(self) -> None:
        if sum(job.state == "waiting" for job in self._jobs.values()) >= self._limit:
            raise Overloaded(f"{self._limit} uploads are waiting, the limit\n  try again in 10 s", retry_after=10)

    def get(self, id: str) -> Job:
        """Return a job, or refuse an id that nobody knows."""
        with self._lock:
            job = self._jobs.get(id)
        if job is None:
            raise Refusal(404, "there is no such job")
        return job

    def stop(self) -> None:
        """Stop every job."""
        with self._lock:
            unfinished = [job for job in self._jobs.values() if job.state in ("waiting", "running")]
        for job in unfinished:
            job.stop()

    def close(self) -> None:
        """Stop every job and wait for the thread."""
        self.stop()
        self._pool.shutdown(wait=True)


def _run(job: Job, work: Callable[[Job], dict[str, Any]]) -> None:
    REQUEST_WORK.set(job.request_work)
    try:
        try:
            job.advance(0)  # it may have been stopped while it waited
            job.state = "running"
            job.result = work(job)
        finally:
            job.clean_up()
        job.state = "done"
    except (Stopped, Disconnected):
        job.state = "stopped"
    except Exception as error:
        message = str(error) if isinstance(error, MunjangError) else f"internal error ({type(error).__name__})"
        if job.request_work.dropped:  # what it waited for was taken away
            job.state = "stopped"
        else:
            job.error, job.state = message, "failed"
