"""Texts of all connections → batches for the engine, and rows back to whoever asked.

Comes in: tickets, each with the token ids of one or more texts. A few compute threads take batches by a token budget, oldest text first,
so that a request of n texts counts like n requests of one text: in its place in the queue, in the room it needs, and in its errors (when a
batch fails, each of its texts is run alone, and only the guilty ones fail). The queue is bounded: a ticket that finds it full is refused at
once. A dropped ticket is never computed.

Tokenising, and what the numbers mean, is left to others.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from munjang.limits import LIMITS, SERVE_LIMITS, ServeLimits, usable_cores
from munjang.serve.refusals import Overloaded
from munjang.serve.ticket import Ticket, tell
from munjang.text.batching import plan_batches
from munjang.types import Vectors
from munjang.wording import count

Rows: TypeAlias = Sequence[Any] | Vectors
"""One result per text."""

WINDOW = 256
"""Oldest texts among which a batch is chosen, so that it holds texts of like length."""

NICE = 5
"""How far compute threads step back behind the thread that talks to clients."""

_FASTEST_RATE = 1e6
"""Tokens a second, before anything was measured."""


class Lane(Protocol):
    """One kind of work: only texts of one lane share a batch."""

    def run(self, items: Sequence[Any], /) -> Rows:
        """Compute one batch, in the calling thread."""
        ...


class Observer(Protocol):
    """Is told about every batch, in a compute thread."""

    def batch(self, texts: int, tokens: int, seconds: float, /) -> None:
        """Take note of one batch."""
        ...


@dataclass(slots=True)
class _Item:
    ticket: Ticket
    place: int
    content: Any
    tokens: int
    number: int


@dataclass(slots=True)
class _Queue:
    lane: Lane
    waiting: deque[_Item] = field(default_factory=deque)


class Batcher:
    """Compute threads and the queue before them; safe from many threads."""

    def __init__(self, *, threads: int | None = None, limits: ServeLimits = SERVE_LIMITS, observer: Observer | None = None) -> None:
        self.threads = threads or usable_cores()
        self.waiting_texts = 0
        self.waiting_tokens = 0
        self._limits = limits
        self._observer = observer
        self._queues: dict[Lane, _Queue] = {}
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._idle = 0
        self._arrived = 0
        self._bell: asyncio.AbstractEventLoop | None = None
        self._rate = _FASTEST_RATE
        self._stopping = False
        self._workers = [threading.Thread(target=self._serve, name=f"munjang-compute-{n}", daemon=True) for n in range(self.threads)]
        for worker in self._workers:
            worker.start()

    def check_room(self, texts: int = 1) -> None:
        """Refuse at once where `submit` would."""
        limits = self._limits
        if self.waiting_tokens >= limits.waiting_tokens or self.waiting_texts + texts > limits.waiting_texts:
            seconds = max(1, round(self.waiting_tokens / self._rate))
            raise Overloaded(
                f"{count(self.waiting_texts, 'text')} with {count(self.waiting_tokens, 'token')} are waiting, "
                f"the limit is {limits.waiting_texts:,} texts or {limits.waiting_tokens:,} tokens\n  try again in {seconds} s",
                retry_after=seconds,
            )

    def submit(self, lane: Lane, contents: Sequence[Any], tokens: Sequence[int], *, loop: asyncio.AbstractEventLoop) -> Ticket:
        """Queue texts for a coroutine, which awaits the ticket's future.

        A thread is woken when the loop has gone through all that came in together, so that one batch takes it all.
        """
        ticket = Ticket([None] * len(contents), len(contents), loop, loop.create_future(), None)
        with self._lock:
            self.check_room(len(contents))
            self._enqueue(lane, ticket, contents, tokens)
            if self._bell is not loop:
                self._bell = loop
                loop.call_soon(self._ring)
        return ticket

    def submit_waiting(self, lane: Lane, contents: Sequence[Any], tokens: Sequence[int], *, patient: bool) -> Ticket:
        """Queue texts for a thread, which calls `wait`; a patient one waits for room instead of being refused."""
        ticket = Ticket([None] * len(contents), len(contents), None, None, threading.Event())
        with self._lock:
            while patient and not self._has_room(len(contents)):
                self._room.wait()
            self.check_room(len(contents))
            self._enqueue(lane, ticket, contents, tokens)
            self._work.notify()
        return ticket

    def stop(self) -> None:
        """Finish what is queued and end the threads."""
        with self._lock:
            self._stopping = True
            self._work.notify_all()
        for worker in self._workers:
            worker.join()

    def _has_room(self, texts: int) -> bool:
        return self.waiting_tokens < self._limits.waiting_tokens and self.waiting_texts + texts <= self._limits.waiting_texts

    def _enqueue(self, lane: Lane, ticket: Ticket, contents: Sequence[Any], tokens: Sequence[int]) -> None:
        queue = self._queues.get(lane)
        if queue is None:
            queue = self._queues[lane] = _Queue(lane)
        for place, (content, length) in enumerate(zip(contents, tokens, strict=True)):
            self._arrived += 1
            queue.waiting.append(_Item(ticket, place, content, length, self._arrived))
        self.waiting_texts += len(contents)
        self.waiting_tokens += sum(tokens)

    def _ring(self) -> None:
        with self._lock:
            self._bell = None
            self._work.notify()

    def _serve(self) -> None:
        """Be a compute thread."""
        _step_back()
        while True:
            with self._lock:
                while self.waiting_texts == 0:
                    if self._stopping:
                        return
                    self._idle += 1
                    self._work.wait()
                    self._idle -= 1
                lane, batch = self._take()
                if self.waiting_texts:
                    self._work.notify()  # whoever is idle takes the next batch
                self._room.notify_all()
            if batch:
                self._compute(lane, batch)

    def _take(self) -> tuple[Lane, list[_Item]]:
        """Choose a batch: the oldest text and others of its lane that go well with it."""
        queue = min((each for each in self._queues.values() if each.waiting), key=lambda each: each.waiting[0].number)
        share = self.waiting_tokens // (self._idle + 1) + 1
        budget = max(LIMITS.efficient_tokens, min(LIMITS.batch_tokens, share))
        window: list[_Item] = []
        while queue.waiting and len(window) < WINDOW:
            item = queue.waiting.popleft()
            if item.ticket.dropped:
                self._leave(item)
            else:
                window.append(item)
        if not window:
            return queue.lane, []
        chosen = next(batch for batch in plan_batches([item.tokens for item in window], budget=budget) if 0 in batch)
        taken = set(chosen)
        queue.waiting.extendleft(item for place, item in reversed(list(enumerate(window))) if place not in taken)
        batch = [window[place] for place in chosen]
        for item in batch:
            self._leave(item)
        return queue.lane, batch

    def _leave(self, item: _Item) -> None:
        self.waiting_texts -= 1
        self.waiting_tokens -= item.tokens

    def _compute(self, lane: Lane, batch: list[_Item]) -> None:
        start = time.perf_counter()
        rows = _run(lane, batch)
        seconds = time.perf_counter() - start
        tokens = sum(item.tokens for item in batch)
        finished: list[Ticket] = []
        with self._lock:
            self._rate = 0.8 * min(self._rate, 1e5) + 0.2 * self.threads * tokens / max(seconds, 1e-6)
            for item, row in zip(batch, rows, strict=True):
                item.ticket.take(item.place, row)
                if item.ticket.missing == 0:
                    finished.append(item.ticket)
        tell(finished)
        if self._observer is not None:
            self._observer.batch(len(batch), tokens, seconds)


def _run(lane: Lane, batch: list[_Item]) -> Rows:
    """Compute a batch; where it fails, each text alone, so that an error stays with the text that has it."""
    try:
        return lane.run([item.content for item in batch])
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [_run(lane, [item])[0] for item in batch]


def _step_back() -> None:
    """Let this thread give way to the one that talks to clients: when every core computes, a refusal must not wait for its turn."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICE)
