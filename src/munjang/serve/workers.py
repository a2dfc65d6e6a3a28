"""A few threads for work that blocks. Clients take turns for them, what one client has waiting is bounded, and large work leaves room."""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from munjang.serve.errors import Overloaded
from munjang.serve.work_item import REQUEST_WORK, RequestWork

Value = TypeVar("Value")

LARGE = 64
"""Texts from which work is large: half of the threads, at most, are at it."""


@dataclass(eq=False, slots=True)
class _Waiting:
    turn: asyncio.Future[None]
    large: bool


class Workers:
    """Threads of one kind; belongs to one event loop."""

    def __init__(self, what: str, *, threads: int, waiting: int, wait_seconds: float) -> None:
        self._what, self._limit, self._wait_seconds = what, waiting, wait_seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"munjang-{what}")
        self._free, self._free_for_large = threads, max(1, threads // 2)
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        """By client; the first one's turn is next."""

    async def run(self, request_work: RequestWork, work: Callable[[], Value], *, texts: int = 1) -> Value:
        """Do the work in a thread when its client's turn has come; refuse it when that takes too long or too much waits."""
        large = texts >= LARGE
        if self._waiting or not self._fits(large):
            await self._wait_for_turn(request_work.client, large, patient=request_work.patient)
        else:
            self._begin(large)
        context = contextvars.copy_context()
        context.run(REQUEST_WORK.set, request_work)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(work))
        finally:
            self._end(large)

    def close(self) -> None:
        """Wait for what is at work."""
        self._pool.shutdown(wait=True)

    async def _wait_for_turn(self, client: str, large: bool, *, patient: bool) -> None:
        own = self._waiting.setdefault(client, deque())
        if len(own) >= self._limit and not patient:
            raise Overloaded(f"{self._limit} {self._what} of this client are waiting, the limit\n  try again in 1 s")
        waiting = _Waiting(asyncio.get_running_loop().create_future(), large)
        own.append(waiting)
        self._call_next()
        try:
            async with asyncio.timeout(None if patient else self._wait_seconds):
                await waiting.turn
        except TimeoutError:
            self._give_up(client, waiting)
            raise Overloaded(f"no turn among the {self._what} within {self._wait_seconds:g} s, the limit\n  try again in 1 s") from None
        except asyncio.CancelledError:
            self._give_up(client, waiting)
            raise

    def _give_up(self, client: str, waiting: _Waiting) -> None:
        if waiting.turn.done() and not waiting.turn.cancelled():  # its turn came at the same moment
            self._end(waiting.large)
            return
        self._waiting[client].remove(waiting)
        if not self._waiting[client]:
            del self._waiting[client]

    def _call_next(self) -> None:
        """Give free threads to those that wait, one client after the other."""
        while found := next(((name, each) for name, own in self._waiting.items() for each in own if self._fits(each.large)), None):
            client, waiting = found
            self._waiting[client].remove(waiting)
            self._waiting.move_to_end(client)
            if not self._waiting[client]:
                del self._waiting[client]
            self._begin(waiting.large)
            waiting.turn.set_result(None)

    def _fits(self, large: bool) -> bool:
        return self._free > 0 and (not large or self._free_for_large > 0)

    def _begin(self, large: bool) -> None:
        self._free -= 1
        self._free_for_large -= large

    def _end(self, large: bool) -> None:
        self._free += 1
        self._free_for_large += large
        self._call_next()
