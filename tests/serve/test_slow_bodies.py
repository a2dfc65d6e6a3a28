"""Clients that trickle, that all come at once, that close their side early, or that send all of their headers in one piece."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_load import Gate, until
from tests.serve.test_protocol import FIRST, HEAD, HEALTH, connected, heard, post, to_the_end

from munjang import SentenceEncoder
from munjang.serve.settings import ServerSettings

SLOW = replace(LIMITS, body_seconds=0.6, body_rate=1_000, max_connections=20, spare_connections=4)


@pytest.fixture(scope="module")
def slow(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams", limits=SLOW)
    with running(settings, model) as started:
        yield started


def trickle(connection: socket.socket, body: bytes, *, size: int, pause: float) -> tuple[bytes, float]:
    """Send a body bit by bit until it is sent or an answer comes; return the answer and the seconds until then."""
    start = time.monotonic()
    connection.sendall(b"POST /embed HTTP/1.1\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n" % (HEAD, len(body)))
    connection.settimeout(pause)
    for at in range(0, len(body), size):
        try:
            connection.sendall(body[at : at + size])
            if answer := connection.recv(65_536):
                return answer, time.monotonic() - start
        except TimeoutError:
            continue
        except OSError:
            return b"", time.monotonic() - start
    connection.settimeout(10)
    return to_the_end(connection), time.monotonic() - start


def test_a_byte_now_and_then_does_not_keep_a_connection(slow: Running) -> None:
    with connected(slow) as connection:
        answer, seconds = trickle(connection, b" " * 1_000, size=1, pause=0.05)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come within 0.6 s and 1 s more for every 1,000 bytes" in answer
    assert seconds < 5


def test_a_body_that_comes_slowly_and_with_the_least_rate_is_taken(slow: Running) -> None:
    body = json.dumps({"inputs": "cat", "prompt_name": None}).encode().rjust(4_000)
    with connected(slow) as connection:
        answer, seconds = trickle(connection, body, size=200, pause=0.1)
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    assert seconds > 3 * SLOW.body_seconds


def test_probes_are_answered_while_slow_clients_hold_every_connection(slow: Running) -> None:
    with ExitStack() as stack:
        for _ in range(SLOW.max_connections):
            held = stack.enter_context(connected(slow))
            held.sendall(b"POST /embed HTTP/1.1\r\n%sContent-Length: 9000\r\n\r\n{" % HEAD)
        for path in ("/health", "/ping", "/metrics"):
            assert slow.get(path).status == 200, path
        refused = slow.get("/info")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.json["error"]["message"] == "20 connections are open, the limit"
    until(lambda: slow.get("/info").status == 200)


def test_a_spare_connection_is_for_one_request(slow: Running) -> None:
    with ExitStack() as stack:
        for _ in range(SLOW.max_connections):
            stack.enter_context(connected(slow)).sendall(b"POST /embed HTTP/1.1\r\n%sContent-Length: 9000\r\n\r\n{" % HEAD)
        with connected(slow) as spare:
            spare.sendall(HEALTH)
            assert b"connection: close" in to_the_end(spare)


@pytest.mark.parametrize("request_bytes", [FIRST, HEALTH, post(b"not json")], ids=["computed", "a probe", "refused"])
def test_a_client_that_closes_its_side_behind_its_request_gets_its_answer(slow: Running, request_bytes: bytes) -> None:
    with connected(slow) as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        answer = to_the_end(connection)
    final = answer.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    assert final.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 ")), answer


@pytest.fixture
def gated(model: SentenceEncoder) -> Iterator[tuple[Running, Gate]]:
    with running(ServerSettings(limits=LIMITS), model) as server:
        gate = Gate(server.service.encoder.engine.lane(0))  # type: ignore[attr-defined]
        try:
            yield server, gate
        finally:
            gate.open.set()


def test_a_half_closed_client_waits_for_a_long_computation_and_a_closed_one_is_noticed(
    gated: tuple[Running, Gate], model: SentenceEncoder
) -> None:
    server, gate = gated
    with ExitStack() as stack:
        for number in range(server.service.batcher.threads):  # each compute thread has one, so that the next request waits
            half = stack.enter_context(connected(server))
            half.sendall(FIRST)
            until(lambda wanted=number + 1: gate.waiting == wanted)
            half.shutdown(socket.SHUT_WR)
        gone = stack.enter_context(connected(server))
        gone.sendall(post(b'{"inputs": "winter snow"}'))
        until(lambda: server.service.batcher.waiting_texts == 1)
        gone.close()
        until(lambda: b'"status":499' in server.log.getvalue())
        time.sleep(0.3)
        gate.open.set()
        assert b"HTTP/1.1 200 OK" in to_the_end(half)
        until(lambda: server.service.batcher.waiting_texts == 0)
    assert tuple(model.tokenizer.encode(["winter snow"])[0]) not in gate.seen  # what nobody waits for is never computed


def test_a_client_that_closes_its_side_within_its_request_is_let_go(slow: Running) -> None:
    with connected(slow) as connection:
        connection.sendall(FIRST[:-5])
        connection.shutdown(socket.SHUT_WR)
        assert to_the_end(connection) == b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        b"GET /health?" + b"y" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["many", "a long one", "a long line"],
)
def test_headers_beyond_the_limit_are_refused_when_they_come_in_one_piece(slow: Running, head: bytes) -> None:
    with connected(slow) as connection:
        connection.sendall(head)
        answer = to_the_end(connection)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"the headers are larger than 32,768 bytes, the limit" in answer


def test_headers_within_the_limit_are_counted_anew_for_every_request(slow: Running) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"
    with connected(slow) as connection:
        for _ in range(3):
            connection.sendall(request)
            assert b" 200 " in heard(connection, b"\r\n\r\n")


class Upload(threading.Thread):
    """Sends a part of an upload and waits."""

    def __init__(self, server: Running, stack: ExitStack, size: int) -> None:
        super().__init__(daemon=True)
        self.connection = stack.enter_context(connected(server))
        self.connection.sendall(
            b"POST /api/libraries/x/upload?filename=a.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self.connection.sendall(b"%x\r\n%s\r\n" % (size, b"a" * size))


def test_unfinished_uploads_count_before_they_reach_the_disk(model: SentenceEncoder, tmp_path: Path) -> None:
    limits = replace(LIMITS, max_held_upload_bytes=100_000, body_seconds=20)
    with running(ServerSettings(data=tmp_path, limits=limits), model) as server, ExitStack() as stack:
        folder, room = server.service.upload_folder(), server.service.upload_room
        for _ in range(3):
            Upload(server, stack, 30_000)
        until(lambda: room.bytes == 90_000)
        answer = server.call("POST", "/api/libraries/x/upload?filename=a.txt", b"a" * 20_000)
        assert (answer.status, answer.headers["retry-after"]) == (429, "10")
        assert answer.json["error"]["message"].startswith("uploads of 90,000 bytes are unfinished, the limit is 100,000")
        Upload(server, stack, 30_000)  # it does not say how large it is
        assert sum(file.stat().st_size for file in folder.glob("*.txt")) <= 100_000
        stack.close()
        until(lambda: room.bytes == 0)
        assert not list(folder.glob("*.txt"))
        job = server.call("POST", "/api/libraries/x/upload?filename=a.txt", b"the cat\n").json
        until(lambda: server.get(f"/api/jobs/{job['id']}").json["state"] == "done")
        assert room.bytes == 0
