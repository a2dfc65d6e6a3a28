"""A few threads for work that blocks, with a bound on what waits for them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from munjang.serve.engines import ERRAND, Errand
from munjang.serve.refusals import Overloaded

Value = TypeVar("Value")


class Workers:
    """Threads of one kind; belongs to one event loop."""

    def __init__(self, what: str, *, threads: int, waiting: int) -> None:
        self._what, self._threads, self._waiting = what, threads, waiting
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"munjang-{what}")
        self._at_work = 0

    async def run(self, errand: Errand, work: Callable[[], Value]) -> Value:
        """Do the work in a thread, or refuse it when too much waits; what it computes belongs to the errand."""
        if self._at_work >= self._threads + self._waiting:
            raise Overloaded(f"{self._waiting} {self._what} are waiting, the limit\n  try again in 1 s")
        context = contextvars.copy_context()
        context.run(ERRAND.set, errand)
        self._at_work += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(work))
        finally:
            self._at_work -= 1

    def close(self) -> None:
        """Wait for what is at work."""
        self._pool.shutdown(wait=True)
