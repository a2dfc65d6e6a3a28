"""The queue and its threads, with work that can be held back."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="the extra serve is not installed")

from munjang.limits import LIMITS, SERVE_LIMITS
from munjang.serve.batcher import NICE, Batcher
from munjang.serve.errors import Disconnected, Overloaded
from munjang.serve.work_item import RequestWork


class Work:
    """A lane that says what it saw, can be held back, and fails on "bad"."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.free = threading.Event()
        self.free.set()
        self.started = threading.Event()

    def run(self, items: Sequence[Any], /) -> list[Any]:
        self.started.set()
        self.free.wait(10)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"{item}!" for item in items]


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    made = Batcher(threads=1, limits=replace(SERVE_LIMITS, waiting_tokens=100, waiting_texts=20))
    yield made
    made.stop()


def held(batcher: Batcher, work: Work) -> Any:
    """Let the only thread work on something until `work.free` is set."""
    work.free.clear()
    work.started.clear()
    work_item = batcher.submit_waiting(work, ["first"], [1], work=RequestWork())
    assert work.started.wait(10)
    return work_item


def test_rows_come_back_in_their_places(batcher: Batcher, work: Work) -> None:
    work_item = batcher.submit_waiting(work, ["a", "b", "c"], [3, 9, 3], work=RequestWork())
    assert work_item.wait() == ["a!", "b!", "c!"]


def test_what_waits_together_runs_together(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    work_items = [batcher.submit_waiting(work, [name], [2], work=RequestWork()) for name in "abc"]
    work.free.set()
    assert [work_item.wait() for work_item in [first, *work_items]] == [["first!"], ["a!"], ["b!"], ["c!"]]
    assert [sorted(batch) for batch in work.batches] == [["first"], ["a", "b", "c"]]


def test_what_one_turn_of_the_loop_brings_is_one_batch(batcher: Batcher, work: Work) -> None:
    async def all_at_once() -> list[list[Any]]:
        loop = asyncio.get_running_loop()
        work_items = [batcher.submit(work, [name], [2], loop=loop, work=RequestWork()) for name in "abcde"]
        return [await work_item.future for work_item in work_items if work_item.future is not None]

    for _ in range(2):  # the second loop rings a bell of its own
        assert asyncio.run(all_at_once()) == [[f"{name}!"] for name in "abcde"]
    assert [sorted(batch) for batch in work.batches] == [list("abcde")] * 2


def test_a_bell_that_never_rang_keeps_nobody_waiting(batcher: Batcher, work: Work) -> None:
    gone = asyncio.new_event_loop()
    batcher.submit(work, ["lost"], [2], loop=gone, work=RequestWork())
    gone.close()
    assert batcher.submit_waiting(work, ["a"], [2], work=RequestWork()).wait() == ["a!"]


def test_a_full_queue_refuses_at_once_and_takes_again_when_it_is_empty(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    waiting = batcher.submit_waiting(work, ["long"], [100], work=RequestWork())
    with pytest.raises(Overloaded, match="100 tokens") as refused:
        batcher.submit_waiting(work, ["more"], [1], work=RequestWork())
    assert refused.value.retry_after >= 1
    assert refused.value.http_status == 429
    work.free.set()
    assert [first.wait(), waiting.wait()] == [["first!"], ["long!"]]
    assert batcher.submit_waiting(work, ["more"], [1], work=RequestWork()).wait() == ["more!"]


def test_n_texts_need_the_room_of_n_requests(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    for number in range(15):
        batcher.submit_waiting(work, [number], [1], work=RequestWork())
    with pytest.raises(Overloaded, match="20 texts"):
        batcher.submit_waiting(work, list(range(6)), [1] * 6, work=RequestWork())
    batcher.submit_waiting(work, list(range(5)), [1] * 5, work=RequestWork())
    work.free.set()
    first.wait()


def test_of_a_patient_request_and_of_one_that_has_begun_nothing_is_refused(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    begun = RequestWork()
    work_items = [batcher.submit_waiting(work, ["long"], [100], work=begun)]
    with pytest.raises(Overloaded):
        batcher.submit_waiting(work, ["refused"], [1], work=RequestWork())
    work_items += [batcher.submit_waiting(work, ["more"], [100], work=each) for each in (begun, RequestWork(patient=True))]
    work.free.set()
    assert [work_item.wait() for work_item in (first, *work_items)] == [["first!"], ["long!"], ["more!"], ["more!"]]


def test_a_dropped_ticket_is_never_computed(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    gone = batcher.submit_waiting(work, ["gone"], [5], work=RequestWork())
    gone.drop()
    work.free.set()
    first.wait()
    assert batcher.submit_waiting(work, ["after"], [1], work=RequestWork()).wait() == ["after!"]
    assert "gone" not in [item for batch in work.batches for item in batch]
    with pytest.raises(Disconnected):
        gone.wait()
    assert (batcher.waiting_texts, batcher.waiting_tokens) == (0, 0)


def test_an_error_stays_with_its_text(batcher: Batcher, work: Work) -> None:
    first = held(batcher, work)
    good, bad = (batcher.submit_waiting(work, [name], [2], work=RequestWork()) for name in ("good", "bad"))
    work.free.set()
    first.wait()
    assert good.wait() == ["good!"]
    with pytest.raises(ValueError, match="bad"):
        bad.wait()


def test_batches_keep_to_the_token_budget(work: Work) -> None:
    batcher = Batcher(threads=1, limits=replace(SERVE_LIMITS, waiting_tokens=10**6))
    first = held(batcher, work)
    half = LIMITS.batch_tokens // 2
    work_item = batcher.submit_waiting(work, list(range(10)), [half] * 10, work=RequestWork())
    work.free.set()
    first.wait()
    assert work_item.wait() == [f"{number}!" for number in range(10)]
    assert max(map(len, work.batches)) <= 2
    batcher.stop()


def test_the_oldest_text_is_always_in_the_next_batch(work: Work) -> None:
    batcher = Batcher(threads=1, limits=replace(SERVE_LIMITS, waiting_tokens=10**6))
    first = held(batcher, work)
    old = batcher.submit_waiting(work, ["old"], [400], work=RequestWork())
    crowd = batcher.submit_waiting(work, list(range(60)), [30] * 60, work=RequestWork())
    work.free.set()
    first.wait(), old.wait(), crowd.wait()
    assert "old" in work.batches[1]
    batcher.stop()


def test_stopping_finishes_what_is_queued(work: Work) -> None:
    batcher = Batcher(threads=2)
    work_items = [batcher.submit_waiting(work, [number], [1], work=RequestWork()) for number in range(50)]
    batcher.stop()
    assert [work_item.wait() for work_item in work_items] == [[f"{number}!"] for number in range(50)]


def test_coroutines_wait_for_their_tickets(batcher: Batcher, work: Work) -> None:
    async def ask(name: str) -> list[Any]:
        work_item = batcher.submit(work, [name], [1], loop=asyncio.get_running_loop(), work=RequestWork())
        assert work_item.future is not None
        return await work_item.future

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(ask(name) for name in ("a", "b", "bad")), return_exceptions=True)

    a, b, bad = asyncio.run(all_of_them())
    assert [a, b] == [["a!"], ["b!"]]
    assert isinstance(bad, ValueError)


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has a priority of its own on Linux alone")
def test_compute_threads_give_way_to_the_thread_that_talks_to_clients(batcher: Batcher) -> None:
    class Priority:
        def run(self, items: Sequence[Any], /) -> list[Any]:
            return [os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) for _ in items]

    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    work_item = batcher.submit_waiting(Priority(), ["a"], [1], work=RequestWork())
    assert work_item.wait() == [min(own + NICE, 19)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_where_threads_have_no_priority_the_process_keeps_its_own(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the priority of the whole process would change")

    monkeypatch.setattr("munjang.serve.batcher.sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr("os.setpriority", refuse)
    batcher = Batcher(threads=1)
    assert batcher.submit_waiting(work, ["a"], [1], work=RequestWork()).wait() == ["a!"]
    batcher.stop()


class Slow:
    """A lane whose every batch takes a tenth of a second."""

    def run(self, items: Sequence[Any], /) -> list[Any]:
        time.sleep(0.1)
        return list(items)


def test_a_request_that_would_wait_too_long_is_refused_at_once_and_told_when_to_come_back() -> None:
    batcher = Batcher(threads=1, limits=replace(SERVE_LIMITS, waiting_tokens=10**6, wait_seconds=2.0))
    lane, piece = Slow(), LIMITS.efficient_tokens // 2
    batcher.submit_waiting(lane, ["measure"], [piece], work=RequestWork()).wait()
    time.sleep(0.05)
    large = batcher.submit_waiting(lane, ["x"] * 100, [piece] * 100, work=RequestWork("greedy"))
    start = time.monotonic()
    with pytest.raises(Overloaded, match="the limit is 2 s\n  try again in 2 s") as refused:
        batcher.submit_waiting(lane, ["x"] * 100, [piece] * 100, work=RequestWork("greedy"))
    assert time.monotonic() - start < 0.05
    assert refused.value.retry_after == 2
    assert batcher.submit_waiting(lane, ["small"], [5], work=RequestWork("greedy")).wait() == ["small"]
    assert batcher.submit_waiting(lane, ["other"], [5], work=RequestWork("modest")).wait() == ["other"]
    assert large.missing > 80
    large.drop()
    batcher.stop()


def test_when_all_texts_that_may_wait_do_an_equal_share_is_still_accepted(work: Work) -> None:
    batcher = Batcher(threads=1, limits=replace(SERVE_LIMITS, waiting_texts=20))
    first = held(batcher, work)
    work_items = [batcher.submit_waiting(work, list(range(20)), [1] * 20, work=RequestWork("greedy"))]
    for client, texts in (("greedy", 11), ("modest", 11)):
        with pytest.raises(Overloaded, match="20 texts are waiting, the limit is 20 texts"):
            batcher.submit_waiting(work, list(range(texts)), [1] * texts, work=RequestWork(client))
    work_items += [batcher.submit_waiting(work, list(range(10)), [1] * 10, work=RequestWork("modest"))]
    work.free.set()
    assert [len(work_item.wait()) for work_item in (first, *work_items)] == [1, 20, 10]
    batcher.stop()
