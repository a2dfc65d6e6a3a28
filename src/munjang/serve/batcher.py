"""Texts of all connections → batches for the engine, and rows back to whoever asked.

In: work items, each with the token ids of one or more texts, and the request that they belong to. As many compute threads as there are
cores take batches in the order of `fair_queue`; one more takes small requests while pieces of large ones have all cores. A request is
refused at once when its client has too much waiting or when its turn would come too late, and taken out of the queue when its turn did not
come in time. A dropped work item is never computed. When a batch fails, each of its texts is run alone, and only the guilty ones fail.

Tokenising, and what the numbers mean, is left to others.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from munjang.limits import LIMITS, SERVE_LIMITS, ServeLimits, usable_cores
from munjang.serve.errors import Overloaded
from munjang.serve.fair_queue import FairQueue, QueuedText
from munjang.serve.work_item import RequestWork, WorkItem, tell
from munjang.types import Vectors
from munjang.wording import count

Rows: TypeAlias = Sequence[Any] | Vectors
"""One result per text."""

NICE = 5
"""How far compute threads step back behind the thread that talks to clients."""

PIECE_SECONDS = 0.04
"""What one turn of a large request takes, about: as long may a small one wait that comes in the middle of it."""

SMALL_PIECE = LIMITS.efficient_tokens // 2
"""Tokens of a turn, at least; with fewer, a run of the engine costs more than it brings."""

OLD_WEIGHT = 0.9
"""Of what was measured before, each time that a batch is measured."""


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


class Batcher:
    """Compute threads and the queue before them; safe from many threads."""

    def __init__(
        self,
        *,
        threads: int | None = None,
        batch_tokens: int = LIMITS.batch_tokens,
        limits: ServeLimits = SERVE_LIMITS,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.threads = threads or usable_cores()
        self._batch_tokens = batch_tokens
        """Tokens of one run at most; a GPU wants more than a processor's cache holds."""
        self._limits = limits
        self._observer = observer
        self._clock = clock
        self._queue = FairQueue(piece=SMALL_PIECE)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._running = self._running_large = 0
        self._bell: asyncio.AbstractEventLoop | None = None
        self._measured_tokens = self._measured_seconds = 0.0
        self._stopping = False
        self._workers = [threading.Thread(target=self._serve, name=f"munjang-compute-{n}", daemon=True) for n in range(self.threads + 1)]
        for worker in self._workers:
            worker.start()

    @property
    def waiting_texts(self) -> int:
        """Texts of all clients in the queue."""
        return self._queue.texts

    @property
    def waiting_tokens(self) -> int:
        """Tokens of all clients in the queue."""
        return self._queue.tokens

    def check_room(self, client: str = "", texts: int = 1, tokens: int = 1) -> None:
        """Refuse at once where `submit` would."""
        limits, queue = self._limits, self._queue
        own, all_before = queue.tokens_before(client, tokens)
        seconds = self._seconds_for(all_before)
        if own >= limits.waiting_tokens:
            problem = f"{count(own, 'token')} of this client are waiting, the limit is {limits.waiting_tokens:,}"
        elif seconds > limits.wait_seconds:
            problem = f"the answer would have to wait {seconds:.0f} s, the limit is {limits.wait_seconds:g} s"
        elif queue.texts + texts > limits.waiting_texts and texts > queue.share_of(client, limits.waiting_texts):
            problem = f"{count(queue.texts, 'text')} are waiting, the limit is {limits.waiting_texts:,} texts"
        else:
            return
        retry_after = max(1, math.ceil(min(seconds, limits.wait_seconds)))
        raise Overloaded(f"{problem}\n  try again in {retry_after} s", retry_after=retry_after)

    def submit(
        self,
        lane: Lane,
        contents: Sequence[Any],
        tokens: Sequence[int],
        *,
        loop: asyncio.AbstractEventLoop,
        work: RequestWork,
    ) -> WorkItem:
        """Queue texts for a coroutine, which awaits the work item's future.

        A thread is woken when the loop has gone through all that came in together, so that one batch takes it all.
        """
        work_item = WorkItem([None] * len(contents), len(contents), loop, loop.create_future(), None)
        with self._lock:
            self.check_room(work.client, len(contents), sum(tokens))
            self._enqueue(lane, work_item, contents, tokens, work)
            if self._bell is not loop:
                self._bell = loop
                loop.call_soon(self._ring)
        return work_item

    def submit_waiting(self, lane: Lane, contents: Sequence[Any], tokens: Sequence[int], *, work: RequestWork) -> WorkItem:
        """Queue texts for a thread, which calls `wait`; of a request that has begun, or is patient, nothing is refused."""
        work_item = WorkItem([None] * len(contents), len(contents), None, None, threading.Event())
        with self._lock:
            if not work.stays:
                self.check_room(work.client, len(contents), sum(tokens))
            self._enqueue(lane, work_item, contents, tokens, work)
            self._work.notify()
        return work_item

    def stop(self) -> None:
        """Finish what is queued and end the threads."""
        with self._lock:
            self._stopping = True
            self._work.notify_all()
        for worker in self._workers:
            worker.join()

    def _enqueue(self, lane: Lane, work_item: WorkItem, contents: Sequence[Any], tokens: Sequence[int], work: RequestWork) -> None:
        texts = [QueuedText(work_item, place, lane, each, size) for place, (each, size) in enumerate(zip(contents, tokens, strict=True))]
        self._queue.put(work, texts, deadline=math.inf if work.stays else self._clock() + self._limits.wait_seconds)
        work.entered = True
        work.tokens += sum(tokens)
        work.work_items.add(work_item)

    def _ring(self) -> None:
        with self._lock:
            self._bell = None
            self._work.notify()

    def _serve(self) -> None:
        """Be a compute thread."""
        _step_back()
        while True:
            with self._lock:
                late = self._queue.expire(self._clock())
                batch, large = self._take()
                if not batch and not late:
                    if self._stopping:
                        return
                    self._work.wait()
                    continue
                self._running += 1
                self._running_large += large
                if self.waiting_texts:
                    self._work.notify()  # whoever is idle takes the next batch
            self._refuse_late(late)
            if batch:
                self._compute(batch)
            with self._lock:
                self._running -= 1
                self._running_large -= large

    def _take(self) -> tuple[list[QueuedText], bool]:
        """Take what is next if a core is free; where large requests have them all, one thread more may take small ones."""
        share = self.waiting_tokens // max(self.threads - self._running, 1) + 1
        budget = max(SMALL_PIECE, min(LIMITS.efficient_tokens, share), self._queue.piece)
        if self._running < self.threads:
            return self._queue.take(budget)
        return self._queue.take_small(budget) if self._running == self._running_large == self.threads else [], False

    def _seconds_for(self, tokens: int) -> float:
        """Estimate how long all threads together take for so many tokens; zero before anything was measured."""
        return tokens * self._measured_seconds / self._measured_tokens / self.threads if self._measured_tokens else 0.0

    def _refuse_late(self, late: Sequence[WorkItem]) -> None:
        limit = self._limits.wait_seconds
        for work_item in late:
            work_item.refuse(Overloaded(f"the request has waited {limit:g} s, the limit, and is not begun\n  try again in 1 s"))
        tell(late)

    def _compute(self, batch: list[QueuedText]) -> None:
        start = time.perf_counter()
        rows = _run(batch)
        seconds = time.perf_counter() - start
        tokens = sum(text.tokens for text in batch)
        finished: list[WorkItem] = []
        with self._lock:
            self._measure(tokens, seconds)
            for text, row in zip(batch, rows, strict=True):
                text.work_item.take(text.place, row)
                if text.work_item.missing == 0:
                    finished.append(text.work_item)
        tell(finished)
        if self._observer is not None:
            self._observer.batch(len(batch), tokens, seconds)

    def _measure(self, tokens: int, seconds: float) -> None:
        self._measured_tokens = OLD_WEIGHT * self._measured_tokens + tokens
        self._measured_seconds = OLD_WEIGHT * self._measured_seconds + max(seconds, 1e-6)
        in_time = round(PIECE_SECONDS * self._measured_tokens / self._measured_seconds)
        self._queue.piece = max(SMALL_PIECE, min(self._batch_tokens, in_time))


def _run(batch: list[QueuedText]) -> Rows:
    """Compute a batch; where it fails, each text alone, so that an error stays with the text that has it."""
    try:
        rows: Rows = batch[0].lane.run([text.content for text in batch])
        return rows
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [_run([text])[0] for text in batch]


def _step_back() -> None:
    """Let this thread give way to the one that talks to clients: when every core computes, a refusal must not wait for its turn."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICE)
