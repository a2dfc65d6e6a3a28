"""Refusals below the routes: settings, threads, work items of clients that went away."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.test_batcher import Work, batcher, held, work  # noqa: F401

from munjang import SentenceEncoder
from munjang.errors import Busy, UsageError
from munjang.limits import SERVE_LIMITS
from munjang.serve.access_log import AccessLog
from munjang.serve.app import make_app
from munjang.serve.batcher import Batcher
from munjang.serve.body import Held, read_body, read_upload
from munjang.serve.engines import batch_encoder
from munjang.serve.errors import Disconnected, Overloaded, Refusal, problem_of
from munjang.serve.service import Service
from munjang.serve.settings import ServerSettings, check_settings
from munjang.serve.work_item import REQUEST_WORK, RequestWork
from munjang.serve.workers import Workers


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_cannot_be_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match=f"^port is {port}, expected 0 to 65,535$"):
        check_settings(ServerSettings(port=port))


@pytest.mark.parametrize("origin", ["example.org", "ftp://example.org", "https://example.org/page", "*"])
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    fine = ServerSettings(origins=("https://example.org", "http://localhost:8000"))
    assert check_settings(fine) is fine
    with pytest.raises(UsageError, match=r"expected a scheme and a host, such as https://example\.org") as told:
        check_settings(ServerSettings(origins=("https://example.org", origin)))
    assert repr(origin) in str(told.value)


def test_whoever_finds_something_busy_is_told_when_to_come_back() -> None:
    problem = problem_of(Busy("news.db: somebody writes to it"))
    assert (problem.status, problem.headers) == (429, {"retry-after": "1"})
    assert problem_of(Overloaded("full", retry_after=10)).headers == {"retry-after": "10"}


def test_a_whole_body_that_is_too_large_is_refused_at_once(tmp_path: Path) -> None:
    """There is nothing left to read, so nobody waits for the rest."""

    async def receive() -> Any:
        assert not asked, "the body had come to its end"
        asked.append(True)
        return {"type": "http.request", "body": b"x" * 200, "more_body": False}

    limits = replace(SERVE_LIMITS, max_upload_bytes=100, max_body_bytes=100)
    asked: list[bool] = []
    with pytest.raises(Refusal, match="the file is larger than 100 bytes, the limit"):
        asyncio.run(read_upload(receive, {}, tmp_path, ".txt", Held(1_000), limits))
    asked.clear()
    with pytest.raises(Refusal, match="the body is larger than 100 bytes, the limit"):
        asyncio.run(read_body(receive, {}, Held(1_000), [], limits))
    assert not list(tmp_path.iterdir())


def test_a_websocket_is_closed_at_once(model: SentenceEncoder) -> None:
    service = Service(ServerSettings(), model, None)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(make_app(service, AccessLog(None))({"type": "websocket", "path": "/", "headers": []}, receive, send))
    service.close()
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_work_beyond_what_may_wait_is_refused_and_taken_again_later() -> None:
    free = threading.Event()

    async def ask() -> list[Any]:
        workers = Workers("searches", threads=1, waiting=1, wait_seconds=10)
        accepted = [asyncio.create_task(workers.run(RequestWork(), lambda: free.wait(10))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="1 searches of this client are waiting, the limit\n  try again in 1 s"):
            await workers.run(RequestWork(), lambda: None)
        free.set()
        return [await one for one in accepted] + [await workers.run(RequestWork(), lambda: "again")]

    assert asyncio.run(ask()) == [True, True, "again"]


def test_clients_take_turns_for_threads() -> None:
    free, order = threading.Event(), []

    async def ask() -> None:
        workers = Workers("searches", threads=1, waiting=10, wait_seconds=10)
        first = asyncio.create_task(workers.run(RequestWork("greedy"), lambda: free.wait(10)))
        await asyncio.sleep(0)
        asked = [("greedy", 1), ("greedy", 2), ("greedy", 3), ("modest", 1)]
        waiting = [
            asyncio.create_task(workers.run(RequestWork(who), lambda each=(who, number): order.append(each))) for who, number in asked
        ]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(first, *waiting)

    asyncio.run(ask())
    assert order.index(("modest", 1)) <= 1
    assert [number for who, number in order if who == "greedy"] == [1, 2, 3]


def test_large_work_leaves_threads_to_small_and_who_gets_none_in_time_is_refused() -> None:
    free = threading.Event()

    async def ask() -> list[Any]:
        workers = Workers("calls", threads=4, waiting=10, wait_seconds=0.2)
        large = [asyncio.create_task(workers.run(RequestWork(), lambda: free.wait(10), texts=1_000)) for _ in range(3)]
        await asyncio.sleep(0)
        small = await workers.run(RequestWork(), lambda: "small")
        found = await asyncio.gather(large[2], return_exceptions=True)
        free.set()
        return [small, *found, *await asyncio.gather(*large[:2]), await workers.run(RequestWork(), lambda: "again", texts=1_000)]

    small, late, *rest = asyncio.run(ask())
    assert small == "small"
    assert isinstance(late, Overloaded)
    assert "0.2 s, the limit" in str(late)
    assert rest == [True, True, "again"]


def test_an_answer_that_nobody_waits_for_any_more_keeps_no_other_from_its_own(batcher: Batcher, work: Work) -> None:  # noqa: F811
    first = held(batcher, work)

    async def ask() -> Any:
        work_items = [batcher.submit(work, [name], [1], loop=asyncio.get_running_loop(), work=RequestWork()) for name in ("a", "b")]
        assert work_items[0].future is not None
        assert work_items[1].future is not None
        work_items[0].future.cancel()
        work.free.set()
        return await asyncio.wait_for(work_items[1].future, 10)

    assert asyncio.run(ask()) == ["b!"]
    assert first.wait() == ["first!"]


def test_a_call_whose_client_is_gone_computes_nothing(model: SentenceEncoder) -> None:
    batcher = Batcher(threads=1)  # noqa: F811
    served = batch_encoder(model, batcher)
    request_work = RequestWork(dropped=True)
    token = REQUEST_WORK.set(request_work)
    try:
        with pytest.raises(Disconnected):
            served.encode(["cat", "dog"])
        assert not request_work.work_items
        answers = served.engine.vectors_of_batches([[[1, 5, 2]], [[1, 6, 2]], [[1, 7, 2]]])
        with pytest.raises(Disconnected):  # the first is given up, and so are those that wait behind it
            next(iter(answers))
        assert not request_work.work_items
    finally:
        REQUEST_WORK.reset(token)
        batcher.stop()
