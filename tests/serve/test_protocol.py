"""One connection at a time: who is sent away, who gets more time, and how a server that stops treats those who are connected."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_load import Gate, until
from uvicorn.server import ServerState

from munjang import SentenceEncoder
from munjang.serve.running import make_server
from munjang.serve.service import Service
from munjang.serve.settings import ServerSettings

HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HEAD + b"\r\n"


def post(body: bytes, path: bytes = b"/embed") -> bytes:
    return b"POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (path, HEAD, len(body), body)


@contextmanager
def connected(server: Running, **options: int) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        for name, value in options.items():
            connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        connection.settimeout(15)
        connection.connect(("127.0.0.1", server.port))
        yield connection


def heard(connection: socket.socket, wanted: bytes) -> bytes:
    """Return what came until `wanted` was in it, or until the end."""
    found = b""
    while wanted not in found and (part := connection.recv(65_536)):
        found += part
    return found


def to_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.fixture
def gated(model: SentenceEncoder) -> Iterator[tuple[Running, Gate]]:
    """A server that computes nothing until the gate is open."""
    with running(ServerSettings(limits=replace(LIMITS, body_seconds=0.3)), model) as server:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        try:
            yield server, gate
        finally:
            gate.open.set()


def test_one_connection_too_many_is_sent_away_with_the_limit(model: SentenceEncoder) -> None:
    limits = replace(LIMITS, max_connections=1, spare_connections=0)
    with running(ServerSettings(limits=limits), model) as server, connected(server) as first:
        first.sendall(HEALTH)
        assert b" 200 " in heard(first, b"\r\n\r\n")
        with connected(server) as second:
            answer = to_the_end(second)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer
        assert b"1 connections are open, the limit" in answer
        first.sendall(HEALTH)
        assert b" 200 " in heard(first, b"\r\n\r\n")


def test_a_kept_connection_has_its_time_for_the_next_headers_too(server: Running) -> None:
    with connected(server) as connection:
        connection.sendall(HEALTH)
        assert b" 200 " in heard(connection, b"\r\n\r\n")
        connection.sendall(b"GET /health HT")
        answer = to_the_end(connection)
    assert b"HTTP/1.1 408 " in answer
    assert b"the headers did not come within 1 s" in answer


def test_a_client_that_reads_slowly_gets_all_of_its_answer(model: SentenceEncoder) -> None:
    limits = replace(LIMITS, send_seconds=1.5, max_texts=1_000)
    body = json.dumps({"a": ["cat", "dog"] * 500}).encode()  # the answer has 10 MB, more than the kernel keeps for a client
    with running(ServerSettings(limits=limits), model) as server, connected(server, SO_RCVBUF=65_536) as connection:
        connection.sendall(post(body, b"/api/similarity"))
        found = bytearray(connection.recv(65_536))
        start = time.monotonic()
        while not found.endswith(b"}"):
            part = connection.recv(65_536)
            assert part, "the server hung up on a client that reads"
            found += part
            time.sleep(0.02)
    assert time.monotonic() > start + limits.send_seconds
    assert len(json.loads(found.partition(b"\r\n\r\n")[2])["scores"]) == 1_000


FIRST = post(b'{"inputs": "cat"}')
SECOND = FIRST.replace(b"Host", b"Connection: close\r\nHost")


def test_a_request_that_the_server_does_not_read_is_not_blamed_for_being_late(
    gated: tuple[Running, Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("munjang.serve.endpoint.WATCH_AFTER", 60)  # until it watches for the client's end, it reads no further
    server, gate = gated
    with connected(server) as connection:
        connection.sendall(FIRST)
        until(lambda: gate.waiting)
        connection.sendall(SECOND[:-5])
        time.sleep(0.8)  # more than twice what a body may take
        connection.sendall(SECOND[-5:])
        gate.open.set()
        answers = to_the_end(connection)
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert b" 408 " not in answers


def test_a_late_request_behind_another_is_not_refused_in_the_place_of_the_others_answer(gated: tuple[Running, Gate]) -> None:
    server, _ = gated
    with connected(server) as connection:
        connection.sendall(FIRST + SECOND[:-5])
        assert to_the_end(connection) == b""  # a 408 here would be read as the answer to the first


def test_nonsense_behind_a_request_ends_the_connection_and_writes_into_no_answer(gated: tuple[Running, Gate]) -> None:
    server, gate = gated
    with connected(server) as connection:
        connection.sendall(post(b'{"inputs": "cat"}'))
        until(lambda: gate.waiting)
        connection.sendall(b"this is no HTTP\r\n\r\n")
        assert to_the_end(connection) == b""
    assert server.get("/health").status == 200


class Stopping:
    """A server that is told to stop while clients are connected."""

    def __init__(self, model: SentenceEncoder) -> None:
        self._stack = ExitStack()
        self.server: Running = self._stack.enter_context(running(ServerSettings(limits=LIMITS), model))
        self._thread = threading.Thread(target=self._stack.close)

    def stop(self) -> None:
        self._thread.start()
        time.sleep(0.2)  # it looks for the wish to stop ten times a second

    def __enter__(self) -> Stopping:
        return self

    def __exit__(self, *_: Any) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_a_server_that_stops_closes_idle_connections(model: SentenceEncoder) -> None:
    with Stopping(model) as it, connected(it.server) as fresh, connected(it.server) as kept:
        kept.sendall(HEALTH)
        assert b" 200 " in heard(kept, b"\r\n\r\n")
        start = time.monotonic()
        it.stop()
        assert to_the_end(fresh) == b""
        assert to_the_end(kept) == b""
        assert time.monotonic() < start + 5


def test_a_request_on_its_way_to_a_server_that_stops_is_answered_and_is_the_last(model: SentenceEncoder) -> None:
    request = post(b'{"inputs": "cat"}')
    with Stopping(model) as it, connected(it.server) as connection:
        connection.sendall(HEALTH)
        assert b" 200 " in heard(connection, b"\r\n\r\n")
        it.stop()
        connection.sendall(request[:-5])
        time.sleep(0.6)  # beyond the time that idle connections are kept for
        connection.sendall(request[-5:])
        answer = to_the_end(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer


class Closed(asyncio.Transport):
    """A connection that is closed and whose last bytes are still on their way."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        pass


def test_what_comes_after_the_end_of_a_connection_is_not_read_and_not_answered(model: SentenceEncoder) -> None:
    async def late() -> tuple[Closed, Any]:
        config = make_server(service).config
        config.load()
        transport, protocol = Closed(), config.http_protocol_class(config=config, server_state=ServerState(), app_state={})  # type: ignore[operator]
        protocol.connection_made(transport)
        protocol.data_received(HEALTH)
        protocol._too_slow()
        protocol.connection_lost(None)
        protocol.data_received(HEALTH)
        return transport, protocol.cycle

    service = Service(ServerSettings(limits=LIMITS), model, None)
    transport, request = asyncio.run(late())
    service.close()
    assert transport.written == []
    assert request is None
