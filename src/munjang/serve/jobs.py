"""Work that takes longer than a client wants to hold its breath: started now, asked about later.

One job runs at a time, a few may wait, and the last hundred are remembered. A job that is stopped keeps what it has done so far.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from munjang.errors import MunjangError
from munjang.serve.engines import ERRAND, Errand
from munjang.serve.refusals import Disconnected, Overloaded, Refusal

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
    errand: Errand = field(default_factory=lambda: Errand(patient=True))

    def advance(self, count: int) -> None:
        """Count what is done; raises Stopped where nobody wants the rest."""
        self.done += count
        if self.errand.dropped:
            raise Stopped

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
            if sum(job.state == "waiting" for job in self._jobs.values()) >= self._limit:
                raise Overloaded(f"{self._limit} uploads are waiting, the limit\n  try again in 10 s", retry_after=10)
            job = Job(secrets.token_hex(8), kind, library)
            self._jobs[job.id] = job
            finished = [id for id, each in self._jobs.items() if each.state not in ("waiting", "running")]
            for id in finished[: max(len(self._jobs) - REMEMBERED, 0)]:
                del self._jobs[id]
        self._pool.submit(_run, job, work, clean_up)
        return job

    def get(self, id: str) -> Job:
        """Return a job, or refuse an id that nobody knows."""
        with self._lock:
            job = self._jobs.get(id)
        if job is None:
            raise Refusal(404, "there is no such job")
        return job

    def close(self) -> None:
        """Stop what runs at its next step, forget what waits, and wait for the thread."""
        with self._lock:
            for job in self._jobs.values():
                job.errand.drop()
        self._pool.shutdown(wait=True)


def _run(job: Job, work: Callable[[Job], dict[str, Any]], clean_up: Callable[[], None]) -> None:
    ERRAND.set(job.errand)
    try:
        try:
            job.advance(0)  # it may have been stopped while it waited
            job.state = "running"
            job.result = work(job)
        finally:
            clean_up()
        job.state = "done"
    except (Stopped, Disconnected):
        job.state = "stopped"
    except MunjangError as error:
        job.error, job.state = str(error), "failed"
    except Exception as error:
        job.error, job.state = f"internal error ({type(error).__name__})", "failed"
