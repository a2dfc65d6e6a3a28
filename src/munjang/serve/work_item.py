"""A request's work, and what it waits for: the rows of its texts, which compute threads bring one by one, in any order.

A coroutine awaits the work item's future, a thread calls `wait`. `tell` wakes them, all of one event loop together.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from munjang.serve.errors import Disconnected


@dataclass(eq=False, slots=True)
class WorkItem:
    """What one caller waits for."""

    rows: list[Any]
    missing: int
    loop: asyncio.AbstractEventLoop | None
    future: asyncio.Future[list[Any]] | None
    event: threading.Event | None
    error: Exception | None = None
    dropped: bool = False

    def take(self, place: int, row: Any) -> None:
        """Take what came of one text: its row, or the error; the first error is the work item's."""
        if isinstance(row, Exception):
            self.error = self.error or row
        else:
            self.rows[place] = row
        self.missing -= 1

    def refuse(self, error: Exception) -> None:
        """End with an error in the place of what has not been computed; `tell` lets the caller know."""
        self.error, self.missing = error, 0

    def drop(self) -> None:
        """Give up: what has not been computed never will be."""
        self.dropped = True
        if self.future is not None and not self.future.done():
            self.future.set_exception(Disconnected())
        if self.event is not None:
            self.event.set()

    def wait(self) -> list[Any]:
        """Block until all rows are there; for threads."""
        assert self.event is not None
        self.event.wait()
        if self.dropped:
            raise Disconnected
        if self.error is not None:
            raise self.error
        return self.rows


@dataclass(eq=False)
class RequestWork:
    """What one request has computed, in whatever thread: whose it is, whether it may wait, and its work items, which can be dropped."""

    client: str = ""
    """Whose turn it takes; see `client_of`."""
    patient: bool = False
    """Waits for its turn for as long as it takes."""
    entered: bool = False
    """Something of it was accepted, so the rest is too."""
    dropped: bool = False
    tokens: int = 0
    """Tokens that were handed to the batcher, special ones included and what was cut off left out."""
    work_items: set[WorkItem] = field(default_factory=set)
    """Those that are not finished."""

    @property
    def stays(self) -> bool:
        """Whether what it brings is never refused."""
        return self.patient or self.entered

    def drop(self) -> None:
        """Give everything up that has not been computed."""
        self.dropped = True
        for work_item in list(self.work_items):
            work_item.drop()


REQUEST_WORK: ContextVar[RequestWork | None] = ContextVar("request_work", default=None)
"""The request that the current thread works for."""


def tell(finished: Sequence[WorkItem]) -> None:
    """Wake everybody whose work item is finished."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WorkItem]] = {}
    for work_item in finished:
        if work_item.loop is not None:
            by_loop.setdefault(work_item.loop, []).append(work_item)
        elif work_item.event is not None:
            work_item.event.set()
    for loop, work_items in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, work_items)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def _resolve(work_items: list[WorkItem]) -> None:
    for work_item in work_items:
        future = work_item.future
        if future is None or future.done():
            continue
        if work_item.error is not None:
            future.set_exception(work_item.error)
        else:
            future.set_result(work_item.rows)
