"""A server with its compute threads held back: refusals come at once, clients that go away are dropped, the rest is answered."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, Answer, Running, running

from munjang import SentenceEncoder
from munjang.serve.settings import ServerSettings

QUEUE = 40


class Gate:
    """Holds a lane back and says what went through it."""

    def __init__(self, lane: Any) -> None:
        self.seen: list[tuple[int, ...]] = []
        self.open = threading.Event()
        self.waiting = 0
        self._run = lane.run
        lane.run = self.run

    def run(self, items: Sequence[Sequence[int]]) -> Any:
        self.waiting += 1
        assert self.open.wait(30)
        self.seen += [tuple(ids) for ids in items]
        return self._run(items)


@pytest.fixture
def busy(model: SentenceEncoder) -> Iterator[tuple[Running, Gate, list[Any]]]:
    """A server whose every compute thread is at work, and the answers that will come of it."""
    limits = replace(LIMITS, waiting_tokens=QUEUE)
    with running(ServerSettings(limits=limits, analyser="bigrams"), model) as server, ThreadPoolExecutor(20) as pool:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        first = _occupy(server, gate, pool)
        try:
            yield server, gate, first
        finally:
            gate.open.set()


def _occupy(server: Running, gate: Gate, pool: ThreadPoolExecutor) -> list[Any]:
    """Let every compute thread wait at the gate; return the answers that will come of it."""
    first = []
    for number in range(server.service.batcher.threads):
        first.append(pool.submit(server.post, "/embed", {"inputs": "cat"}))
        until(lambda wanted=number + 1: gate.waiting >= wanted)
    return first


def until(met: Any) -> None:
    end = time.monotonic() + 20
    while not met():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_full_queue_refuses_at_once_in_every_dialect_and_recovers(busy: tuple[Running, Gate, list[Any]]) -> None:
    server, gate, first = busy
    with ThreadPoolExecutor(4) as pool:
        waiting = pool.submit(server.post, "/embed", {"inputs": ["sleep " * 60] * 2})
        until(lambda: server.service.batcher.waiting_tokens >= QUEUE)
        for path, body in (("/embed", {"inputs": "a"}), ("/v1/embeddings", {"input": "a"}), ("/api/inspect", {"text": "a"})):
            start = time.monotonic()
            refused = server.post(path, body)
            assert refused.status == 429, path
            assert int(refused.headers["retry-after"]) >= 1
            assert f"{QUEUE}" in json.dumps(refused.json)
            assert time.monotonic() - start < 5
        assert server.get("/health").status == 200
        gate.open.set()
        assert waiting.result(30).status == 200
    answers: list[Answer] = [each.result(30) for each in first]
    assert [answer.status for answer in answers] == [200] * len(answers)
    assert server.post("/embed", {"inputs": "a"}).status == 200


def test_a_client_that_goes_away_is_never_computed(busy: tuple[Running, Gate, list[Any]], model: SentenceEncoder) -> None:
    server, gate, first = busy
    body = json.dumps({"inputs": "winter snow"}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        until(lambda: server.service.batcher.waiting_texts == 1)
        time.sleep(0.2)
    time.sleep(0.3)
    gate.open.set()
    for each in first:
        assert each.result(30).status == 200
    assert server.post("/embed", {"inputs": "book"}).status == 200
    assert tuple(model.tokenizer.encode(["book"])[0]) in gate.seen
    assert tuple(model.tokenizer.encode(["winter snow"])[0]) not in gate.seen


def test_a_search_that_waits_is_dropped_when_its_client_goes(busy: tuple[Running, Gate, list[Any]]) -> None:
    server, gate, _ = busy
    body = b'{"text": "winter snow"}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = b"POST /api/inspect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        until(lambda: server.service.batcher.waiting_texts == 1)
        time.sleep(0.2)
    time.sleep(0.3)
    gate.open.set()
    until(lambda: server.service.batcher.waiting_texts == 0)
    assert server.post("/embed", {"inputs": "book"}).status == 200


def test_a_large_request_keeps_no_small_one_out_and_none_waiting_though_all_come_from_one_address(
    model: SentenceEncoder,
) -> None:
    large, limits = [f"sleep {number} " * 20 for number in range(64)], replace(LIMITS, waiting_tokens=1_000)
    with running(ServerSettings(limits=limits, analyser="bigrams"), model) as server, ThreadPoolExecutor(20) as pool:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        _occupy(server, gate, pool)
        batch = pool.submit(server.post, "/embed", {"inputs": large})
        until(lambda: server.service.batcher.waiting_texts == 64)
        small = [pool.submit(server.post, "/embed", {"inputs": f"book {number}"}) for number in range(10)]
        until(lambda: server.service.batcher.waiting_texts == 74)
        gate.open.set()
        assert [each.result(30).status for each in small] == [200] * 10
        assert batch.result(30).status == 200
    places = [gate.seen.index(tuple(ids)) for ids in model.tokenizer.encode([f"book {number}" for number in range(10)])]
    assert max(places) < len(gate.seen) - 20, "small requests were computed last"


def test_who_has_much_waiting_is_refused_and_others_are_not(model: SentenceEncoder) -> None:
    """Two clients, told apart by their addresses: the queue of one is full, and that is nothing to the other."""
    limits = replace(LIMITS, waiting_tokens=QUEUE)
    with running(ServerSettings(limits=limits, analyser="bigrams"), model) as server, ThreadPoolExecutor(40) as pool:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        greedy = [pool.submit(server.post, "/embed", {"inputs": f"sleep {number} " * 3}) for number in range(30)]
        until(lambda: sum(each.done() for each in greedy) >= 10)
        modest = pool.submit(_post_from, "127.0.0.2", server.port, {"inputs": "book"})
        until(lambda: modest.done() or _clients(server) == 2)
        gate.open.set()
        assert modest.result(30) == 200
        statuses = [each.result(30).status for each in greedy]
        assert set(statuses) == {200, 429}


def test_what_has_waited_too_long_is_refused_and_never_computed(model: SentenceEncoder) -> None:
    limits = replace(LIMITS, wait_seconds=0.2)
    with running(ServerSettings(limits=limits, analyser="bigrams"), model) as server, ThreadPoolExecutor(20) as pool:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        first = _occupy(server, gate, pool)
        late = [pool.submit(server.post, path, body) for path, body in (("/embed", {"inputs": "book"}), ("/api/inspect", {"text": "book"}))]
        until(lambda: server.service.batcher.waiting_texts == 2)
        time.sleep(0.25)
        gate.open.set()
        for answer in (each.result(30) for each in late):
            assert answer.status == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert "0.2 s" in json.dumps(answer.json)
        assert [each.result(30).status for each in first] == [200] * len(first)
    assert tuple(model.tokenizer.encode(["book"])[0]) not in gate.seen


def _clients(server: Running) -> int:
    return len(server.service.batcher._queue._clients)


def _post_from(address: str, port: int, body: Any) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    try:
        connection.request("POST", "/embed", json.dumps(body), {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
