"""Who may come in, what they may send, what the answer's headers forbid, and what the log never holds."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serve.conftest import LIMITS, Running, running

from munjang import SentenceEncoder
from munjang.errors import InputError, UsageError
from munjang.serve.keys import read_key
from munjang.serve.settings import ServerSettings, check_settings

KEY = "a-key-that-nobody-guesses"
SECRET = "문장-secret-text-7391"


@pytest.fixture(scope="module")
def locked(model: SentenceEncoder) -> Iterator[Running]:
    settings = ServerSettings(
        key=KEY, hosts=("search.example.org",), origins=("https://pages.example.org",), limits=LIMITS, analyser="bigrams"
    )
    with running(settings, model) as started:
        yield started


def test_the_key_is_wanted_everywhere_but_where_a_probe_or_the_page_looks(locked: Running) -> None:
    for path in ("/info", "/metrics", "/v1/models", "/api/libraries", "/docs", "/openapi.json", "/nothing"):
        assert locked.get(path).status == 401, path
    assert locked.post("/", {"inputs": "cat"}).status == 401
    assert locked.get("/health").status == 200
    assert locked.get("/").status in (200, 307)
    assert locked.get("/page/nothing").status == 404
    answer = locked.get("/v1/models")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "given", ["", KEY, f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer", "Bearer \xff\xfe"], ids=range(7)
)
def test_a_wrong_key_is_refused(locked: Running, given: str) -> None:
    assert locked.get("/info", authorization=given).status == 401


def test_the_right_key_is_taken(locked: Running) -> None:
    assert locked.get("/info", authorization=f"Bearer {KEY}").status == 200
    assert locked.post("/embed", {"inputs": "cat"}, Authorization=f"bearer {KEY}").status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("[::1]:8080", 200),
        ("search.example.org", 200),
        ("SEARCH.example.org:443", 200),
        ("evil.example.org", 421),
        ("localhost.evil.org", 421),
        ("127.0.0.1.evil.org", 421),
        ("", 421),
        (":80", 421),
        ("localhost.", 200),
        ("LOCALHOST:", 200),
        ("127.0.0.1:65535", 200),
        ("[::1]", 200),
        ("localhost:65536", 400),
        ("localhost:http", 400),
        ("localhost:80:80", 400),
        ("::1", 400),
        ("[::1", 400),
        ("[::1]evil.example.org", 400),
        ("[127.0.0.1]", 400),
        ("[localhost]", 400),
        ("[fe80::1%25eth0]", 400),
        ("user@localhost", 400),
        ("localhost, evil.example.org", 400),
        ("localhost/evil", 400),
        ("localhost..", 421),
        ("locálhost", 400),
    ],
    ids=str,
)
def test_only_known_hosts_are_answered(locked: Running, host: str, status: int) -> None:
    assert locked.get("/health", host=host).status == status


def test_pages_of_other_origins_are_refused_unless_listed(locked: Running, server: Running) -> None:
    assert locked.get("/health", origin="https://evil.example.org").status == 403
    assert locked.get("/health", origin="null").status == 403
    listed = locked.get("/health", origin="https://pages.example.org")
    assert listed.headers["access-control-allow-origin"] == "https://pages.example.org"
    own = server.get("/health", origin=server.url)
    assert own.status == 200
    assert "access-control-allow-origin" not in own.headers
    leave = locked.call("OPTIONS", "/embed", origin="https://pages.example.org", access_control_request_method="POST")
    assert leave.status == 204
    assert "authorization" in leave.headers["access-control-allow-headers"]
    assert locked.call("OPTIONS", "/embed", origin="https://evil.example.org", access_control_request_method="POST").status == 403


def test_every_answer_forbids_what_a_page_does_not_need(server: Running) -> None:
    for answer in (server.get("/health"), server.get("/nothing"), server.post("/embed", {}), server.get("/docs"), server.get("/")):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_bodies_are_bounded_while_they_stream(server: Running) -> None:
    told = server.post("/embed", b" " * (2**20 + 1))
    assert told.status == 413
    assert f"{2**20:,}" in told.json["error"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/embed", iter([b" " * 2**18] * 6), {"content-type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"], ids=str)
def test_other_types_of_body_are_refused(server: Running, media: str) -> None:
    assert server.call("POST", "/embed", b'{"inputs": "a"}', content_type=media).status == 415


def test_compressed_bodies_are_refused(server: Running) -> None:
    assert server.call("POST", "/embed", b"x", content_encoding="gzip").status == 415


def test_errors_have_the_shape_of_their_route(server: Running) -> None:
    assert set(server.get("/v1/nothing").json["error"]) == {"message", "type", "param", "code"}
    assert set(server.get("/v2/rerank").json) == {"message"}
    assert set(server.get("/api/nothing").json["error"]) == {"message", "code", "field"}
    assert set(server.get("/nothing").json) == {"error", "error_type"}
    assert server.get("/embed").headers["allow"] == "POST"


def test_the_log_has_a_line_per_request_and_neither_texts_nor_keys(locked: Running) -> None:
    bearer = f"Bearer {KEY}"
    locked.post("/embed", {"inputs": [SECRET, "sleep " * 60]}, authorization=bearer)
    locked.post(f"/api/libraries/{SECRET.encode().hex()}/search?q=hidden", {"query": SECRET}, authorization=bearer)
    locked.post("/embed", {SECRET: SECRET}, authorization=f"Bearer {SECRET.encode().hex()}")
    locked.get("/" + SECRET.encode().hex(), authorization=bearer)
    time.sleep(0.6)
    written = locked.log.getvalue().decode()
    lines = [json.loads(line) for line in written.splitlines()]
    found = next(line for line in lines if line["route"] == "/embed" and line["texts"] == 2)
    assert found["status"] == 200
    assert found["truncated"] == 1
    assert found["tokens"] > 60
    for hidden in (KEY, SECRET, SECRET.encode().hex(), "hidden"):
        assert hidden not in written


@pytest.mark.parametrize("given", ["a", "8f14e45f-ceea-4677-b1e5-2b1d1b2c3d4e", "trace:1/2+3=4@host~x", "x" * 128], ids=len)
def test_a_request_keeps_the_name_it_comes_with(server: Running, given: str) -> None:
    for answer in (server.get("/health", x_request_id=given), server.post("/v1/embeddings", {}, x_request_id=given)):
        assert answer.headers["x-request-id"] == given
    assert server.get("/nothing", x_request_id=given).headers["x-request-id"] == given


@pytest.mark.parametrize("given", [None, "", "x" * 129, "two words", "a\tb", "é", '"quoted"', "<b>"], ids=repr)
def test_every_other_request_gets_a_name_of_its_own(server: Running, given: str | None) -> None:
    named = {} if given is None else {"x_request_id": given}
    found = [server.get(path, **named).headers["x-request-id"] for path in ("/health", "/nothing", "/info", "/health")]
    assert len(set(found)) == 4
    assert all(len(name) == 32 and name.isalnum() for name in found)


def test_refusals_of_the_guard_and_of_the_protocol_have_names_too(locked: Running) -> None:
    import socket

    for answer in (locked.get("/info"), locked.get("/health", host="evil.example.org"), locked.get("/health", origin="null")):
        assert len(answer.headers["x-request-id"]) == 32
    with socket.create_connection(("127.0.0.1", locked.port), timeout=30) as connection:
        connection.sendall(b"no http at all\r\n\r\n")
        assert b"\r\nx-request-id: " in connection.recv(4096)


def test_the_log_says_the_requests_name(server: Running) -> None:
    server.get("/health", x_request_id="find-me-in-the-log")
    time.sleep(0.6)
    assert any(json.loads(line)["id"] == "find-me-in-the-log" for line in server.log.getvalue().decode().splitlines())


def test_metrics_count_requests_texts_and_batches(server: Running) -> None:
    server.post("/embed", {"inputs": ["cat", "dog"]})
    numbers = server.get("/metrics").body.decode()
    assert 'munjang_requests_total{route="/embed",status="200"}' in numbers
    for name in ("munjang_texts_total", "munjang_waiting_tokens", "munjang_batch_texts_bucket", "munjang_compute_seconds_total"):
        assert name in numbers


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"], ids=str)
def test_other_machines_are_not_let_in_without_a_key(host: str) -> None:
    with pytest.raises(UsageError, match="api-key-file"):
        check_settings(ServerSettings(host=host))
    assert check_settings(ServerSettings(host=host, key=KEY)).host == host


def test_a_key_is_never_shown() -> None:
    assert KEY not in repr(ServerSettings(key=KEY))


@pytest.mark.parametrize(
    "content", [b"", b"short\n", b"a-key-of-length-16\nand-another-of-them\n", b"with a space inside it\n", b"\xff" * 20], ids=range(5)
)
def test_a_bad_key_file_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_key(file)
    assert "a-key" not in str(refused.value)
    file.write_text(f"{KEY}\n")
    assert read_key(file) == KEY
