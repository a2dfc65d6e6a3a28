"""Head and body of an answer leave together, and nothing is held back for good."""

from __future__ import annotations

import http.client
import re
import socket

from hypothesis import given
from hypothesis import strategies as st
from tests.serve.conftest import Running

from munjang.serve.protocol import OneWrite


class Transport:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def test_head_and_body_are_one_write() -> None:
    inner = Transport()
    one = OneWrite(inner)  # type: ignore[arg-type]
    one.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert inner.written == []
    one.write(b"body")
    one.flush()
    assert inner.written == [b"HTTP/1.1 200 OK\r\n\r\nbody"]


@given(pieces=st.lists(st.binary(max_size=5), max_size=5), asks=st.booleans(), ends=st.sampled_from(["flush", "close"]))
def test_all_bytes_are_written_in_order(pieces: list[bytes], asks: bool, ends: str) -> None:
    inner = Transport()
    one = OneWrite(inner)  # type: ignore[arg-type]
    said = [b"HTTP/1.1 100 Continue\r\n\r\n"] * asks + [b"HTTP/1.1 200 OK\r\n\r\n", *pieces]
    for data in said:
        one.write(data)
    getattr(one, ends)()
    assert b"".join(inner.written) == b"".join(said)
    assert one.is_closing() == (ends == "close")


def test_a_head_alone_does_not_hold_a_kept_connection(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for method in ("HEAD", "GET", "HEAD"):
        connection.request(method, "/health")
        response = connection.getresponse()
        response.read()
        assert response.status in (200, 405)
    connection.close()


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += b"Expect: 100-continue\r\nContent-Length: 17\r\n\r\n"
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(b'{"inputs": "cat"}')
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
            b"GET /info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert re.findall(rb"HTTP/1\.1 (\d\d\d)", answer) == [b"200", b"404", b"200"]
