"""Bytes straight into the socket: never a 5xx, never a dead or growing process, and nobody can hold a connection by being slow."""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.serve.command import start
from tests.serve.conftest import LIMITS, Running
from tests.serve.raw_cases import cases, talk

STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in STATUS.findall(answer)]


def resident_megabytes(pid: int) -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


def run_cases(port: int, count: int) -> None:
    for number, request in enumerate(cases(count)):
        answer = talk(port, request)
        assert all(status < 500 for status in statuses(answer)), (number, request[:200], answer[:300])


def test_odd_requests_get_no_5xx(server: Running) -> None:
    run_cases(server.port, 84)
    assert server.post("/embed", {"inputs": "cat"}).status == 200


@pytest.mark.slow
def test_a_thousand_odd_requests_get_no_5xx_and_no_memory(tiny_bert_folder: Path, tmp_path: Path) -> None:
    process, port = start(tiny_bert_folder, tmp_path)  # not in this process, which holds torch and much else
    try:
        run_cases(port, 250)  # caches, analysers and the allocator's arenas reach their size
        before = resident_megabytes(process.pid)
        run_cases(port, 1_000)
        assert process.poll() is None
        assert resident_megabytes(process.pid) < before * 1.1
    finally:
        process.terminate()
        process.wait(60)


LARGE_BODIES = (
    b'{"inputs": "' + b"rain " * 1_500_000 + b'"}',
    b'{"inputs": [' + b'"a",' * 1_500_000 + b'"a"]}',
    b'{"inputs": [' + b'"rain and snow and wind",' * 2_000 + b'"a"]}',
    b"[" + (b"{" + b",".join(b'"key%d":1' % number for number in range(10_000)) + b"},") * 40 + b"1]",
)


@pytest.mark.slow
def test_the_memory_of_large_bodies_is_given_back(tiny_bert_folder: Path, tmp_path: Path) -> None:
    process, port = start(tiny_bert_folder, tmp_path)
    try:
        run_cases(port, 84)
        fresh = resident_megabytes(process.pid)
        with ThreadPoolExecutor(8) as threads:
            requests = [
                b"POST /embed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                for body in LARGE_BODIES * 8
            ]
            answers = list(threads.map(lambda request: talk(port, request), requests))
        assert all(status < 500 for answer in answers for status in statuses(answer))
        most = resident_megabytes(process.pid)
        end = time.monotonic() + 60
        while resident_megabytes(process.pid) > fresh * 1.2 and time.monotonic() < end:
            time.sleep(1)
        assert resident_megabytes(process.pid) <= fresh * 1.2, (fresh, most)
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("size", [20_000_000], ids=["20 MB"])
def test_a_text_of_20_megabytes_is_refused(server: Running, size: int) -> None:
    assert server.post("/embed", b'{"inputs": "' + b"x" * size + b'"}').status == 413


def test_a_million_texts_are_refused(server: Running) -> None:
    assert server.post("/embed", b'{"inputs": [' + b'"a",' * 999_999 + b'"a"]}').status == 413


@pytest.mark.parametrize(
    "sent",
    [b"", b"P", b"POST /embed HTTP/1.1\r\n", b"POST /embed HTTP/1.1\r\nHost: localhost\r\nX: "],
    ids=["nothing", "a byte", "a line", "a header"],
)
def test_slow_headers_are_timed_out(server: Running, sent: bytes) -> None:
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(sent)
        answer = connection.recv(65_536)
        assert connection.recv(1) == b""
    assert statuses(answer) == [408]
    assert time.monotonic() - start < LIMITS.head_seconds + 4


def test_a_body_that_stops_coming_is_timed_out(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert statuses(connection.recv(65_536)) == [408]


def test_a_header_byte_now_and_then_does_not_help(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        end = time.monotonic() + LIMITS.head_seconds + 4
        gone = False
        while not gone and time.monotonic() < end:
            time.sleep(0.1)
            try:
                connection.sendall(b"a")
                connection.settimeout(0.01)
                gone = connection.recv(65_536) != b"" or True
            except TimeoutError:
                continue
            except OSError:
                gone = True
        assert gone


def test_a_client_that_does_not_read_is_cut_off(server: Running) -> None:
    body = b'{"inputs": ["' + b'", "'.join([b"sleep " * 40] * 32) + b'"]}'  # the answer has 300 kB
    one = b"POST /embed_all HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", server.port))
        gone = False
        end = time.monotonic() + 60
        while not gone and time.monotonic() < end:
            try:
                connection.sendall(one * 20)
            except OSError:
                gone = True
        assert gone


def test_endless_headers_are_refused(server: Running) -> None:
    answer = talk(server.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000)
    assert statuses(answer) == [431]


def test_errors_before_any_route_are_json_too(server: Running) -> None:
    answer = talk(server.port, b"this is no HTTP\r\n\r\n")
    assert statuses(answer) == [400]
    assert b"application/json" in answer
    assert b'{"error":{"message":' in answer
