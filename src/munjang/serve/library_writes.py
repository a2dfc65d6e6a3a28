"""Changes to libraries: one at a time for each, clients in turn, and small adds that wait together in one commit.

Whoever waits does so without a thread. An add is answered when it is on disk; where a commit of several fails, each is tried alone, so that
an error is told to the one whose it is. A file that is added in the background lets others have their turn after every batch. A program
outside the server that writes to the same library is waited for, too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from munjang.errors import Busy
from munjang.library.indexing import AddReport, Progress
from munjang.library.library import Library
from munjang.limits import ServeLimits
from munjang.serve.errors import Disconnected, Overloaded
from munjang.serve.library_schema import describe_added
from munjang.serve.work_item import RequestWork
from munjang.serve.workers import Workers

Value = TypeVar("Value")

GROUP_RECORDS = 256
"""Records of one commit for several callers; an add with more has a turn of its own."""

BUSY_PAUSE = 0.05


@dataclass(eq=False, slots=True)
class _Change:
    request_work: RequestWork
    library: Library
    records: Sequence[Any] | None
    """What is added; None: `work` is done alone."""
    work: Callable[[], Any]
    future: asyncio.Future[Any]
    begun: bool = False

    @property
    def joins(self) -> bool:
        """Whether it may share a commit."""
        return self.records is not None and len(self.records) <= GROUP_RECORDS


class LibraryWrites:
    """The changes that wait, by library and client; `add` and `change` belong to one event loop, the rest is safe from many threads."""

    def __init__(self, workers: Workers, limits: ServeLimits) -> None:
        self._workers, self._limits = workers, limits
        self._waiting: dict[str, OrderedDict[str, deque[_Change]]] = {}
        """Of the libraries that are written to. The first client's turn is next."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: dict[str, _TurnLock] = {}

    async def add(self, request_work: RequestWork, library: Library, records: Sequence[Any]) -> dict[str, Any]:
        """Add records when their turn has come, maybe in one commit with others', and return the report for clients."""
        found: dict[str, Any] = await self._wait_for_turn(
            request_work, library, records, lambda: describe_added(library, library.add(records))
        )
        return found

    async def change(self, request_work: RequestWork, library: Library, work: Callable[[], Value]) -> Value:
        """Do something else to a library when its turn has come."""
        found: Value = await self._wait_for_turn(request_work, library, None, work)
        return found

    def add_in_turns(self, library: Library, records: Iterable[Any], *, progress: Progress | None = None) -> AddReport:
        """Add records from a thread, and let others have their turn between two batches."""
        waiting, total = iter(records), AddReport()
        while batch := list(islice(waiting, GROUP_RECORDS)):
            with self._turn(library.store.name):
                total += _with_patience(partial(library.add, batch, progress=progress), self._limits.wait_seconds)
        return total

    async def _wait_for_turn(
        self, request_work: RequestWork, library: Library, records: Sequence[Any] | None, work: Callable[[], Any]
    ) -> Any:
        loop, name = asyncio.get_running_loop(), library.store.name
        first = name not in self._waiting
        clients = self._waiting.setdefault(name, OrderedDict())
        own = clients.setdefault(request_work.client, deque())
        if len(own) >= self._limits.waiting_writes:
            limit = self._limits.waiting_writes
            raise Overloaded(f"{limit} changes of this client to the library are waiting, the limit\n  try again in 1 s")
        change = _Change(request_work, library, records, work, loop.create_future())
        own.append(change)
        if first:
            task = loop.create_task(self._work_off(name))
            self._tasks.add(task)  # the loop itself keeps no hold of it
            task.add_done_callback(self._tasks.discard)
        timer = loop.call_later(self._limits.wait_seconds, _refuse_late, change, self._limits.wait_seconds)
        try:
            return await change.future
        finally:
            timer.cancel()

    async def _work_off(self, name: str) -> None:
        """Do all that waits for one library."""
        clients = self._waiting[name]
        try:
            while group := _next_group(clients):
                request_work = group[0].request_work if len(group) == 1 else RequestWork(group[0].request_work.client)
                request_work.patient = True  # it has waited for its turn
                texts = sum(len(change.records or ()) for change in group)
                try:
                    outcomes = await self._workers.run(request_work, partial(self._commit, name, group), texts=texts)
                except Exception as error:
                    outcomes = [error] * len(group)
                for change, outcome in zip(group, outcomes, strict=True):
                    _tell(change, outcome)
        finally:
            del self._waiting[name]

    def _commit(self, name: str, group: Sequence[_Change]) -> list[Any]:
        """Do a group of changes in a thread; return what came of each, results or errors."""
        patience = self._limits.wait_seconds
        with self._turn(name):
            if len(group) > 1:
                library = group[0].library
                with suppress(Exception):  # nothing of it is on disk then: each alone, and the one that is to blame is told
                    reports = _with_patience(lambda: library.add_groups([change.records or () for change in group]), patience)
                    return [describe_added(library, report) for report in reports]
            return [_result_of(partial(_with_patience, change.work, patience)) for change in group]

    def _turn(self, name: str) -> AbstractContextManager[None]:
        return self._locks.setdefault(name, _TurnLock()).turn()


class _TurnLock:
    """A lock that goes to whoever has waited longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold it."""
        own = threading.Event()
        with self._lock:
            self._waiting.append(own)
            self._waiting[0].set()
        own.wait()
        try:
            yield
        finally:
            with self._lock:
                self._waiting.popleft()
                if self._waiting:
                    self._waiting[0].set()


def _next_group(clients: OrderedDict[str, deque[_Change]]) -> list[_Change]:
    """Take the next change out, and adds of others that may share its commit; clients in turn."""
    group: list[_Change] = []
    records = 0
    while clients:
        client, own = next(iter(clients.items()))
        change = own[0]
        wanted = not change.request_work.dropped and not change.future.done()
        if wanted and group and not (change.joins and group[0].joins and records + len(change.records or ()) <= GROUP_RECORDS):
            break
        own.popleft()
        clients.move_to_end(client)
        if not own:
            del clients[client]
        if wanted:
            change.begun = True
            group.append(change)
            records += len(change.records or ())
        else:
            _tell(change, Disconnected())
    return group


def _with_patience(work: Callable[[], Value], seconds: float) -> Value:
    """Do the work; as long as a program outside the server writes to the library, wait."""
    end = time.monotonic() + seconds
    while True:
        try:
            return work()
        except Overloaded:
            raise
        except Busy:
            if time.monotonic() >= end:
                raise
            time.sleep(BUSY_PAUSE)


def _result_of(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


def _tell(change: _Change, outcome: Any) -> None:
    if change.future.done():
        return
    if isinstance(outcome, Exception):
        change.future.set_exception(outcome)
    else:
        change.future.set_result(outcome)


def _refuse_late(change: _Change, seconds: float) -> None:
    if not change.begun:
        _tell(change, Overloaded(f"no turn to change the library within {seconds:g} s, the limit\n  try again in 1 s"))
