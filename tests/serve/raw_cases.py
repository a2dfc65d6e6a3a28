"""Bytes that no well-meant client sends: bad chunking, lying lengths, odd headers, traps in JSON. The same on every run."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

PATHS = (
    "/embed",
    "/v1/embeddings",
    "/rerank",
    "/v2/rerank",
    "/api/pairs",
    "/api/libraries",
    "/api/libraries/sample/search",
    "/tokenize",
    "/decode",
    "/",
)
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b'{"inputs": NaN}',
    b'{"inputs": 1e999}',
    b'{"inputs": "a", "inputs": "b"}',
    b'{"inputs": "\\ud800"}',
    b'{"input": "\\udfff\\ud800", "query": "\\udc00"}',
    b"[" * 100_000,
    b'{"a":' * 5_000,
    '{"inputs": "a"}'.encode("utf-16"),
    b"\xff\xfe\x00",
    b'{"inputs": [' + b"1," * 50_000 + b"1]}",
    b'{"texts": [' + b'"a",' * 100_000 + b'"a"]}',
    b'{"inputs": "' + b"x" * 900_000 + b'"}',
    b'{"query": "a", "texts": ["' + "\u0301".encode() * 20_000 + b'"]}',
    b'{"inputs": "\\u0000\\u200b\\ufeff"}',
    b'{"input": [[0, 1, 2], [99999999999999999999]]}',
    b'{"ids": [[-1]]}',
    b'{"name": "..\\/..\\/x"}',
    b'{"query": "a", "where": "' + b"(" * 5_000 + b'"}',
    b'{"query": "a", "k": 1e400}',
    b"\x00" * 1000,
)
METHODS = ("POST", "POST", "POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW", "post")


def cases(count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield requests."""
    chance = random.Random(seed)
    shapes = (_plain, _lying, _chunked, _headers, _line, _noise, _pipelined)
    for number in range(count):
        yield shapes[number % len(shapes)](chance)


def talk(port: int, request: bytes, *, patience: float = 30.0, settle: float = 0.5, piece: int = 65_536) -> bytes:
    """Send a request and return all that comes back; after `settle` seconds without a word, say that nothing more will come."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        try:
            for start in range(0, len(request), piece):
                connection.sendall(request[start : start + piece])
        except OSError:
            pass  # refused while we were still sending
        connection.settimeout(settle)
        try:
            while part := _heard(connection, patience):
                found += part
        except OSError:
            pass
    return found


def _heard(connection: socket.socket, patience: float) -> bytes:
    """Return what comes next; where nothing comes, because the server waits for more, say that there is none."""
    try:
        return connection.recv(65_536)
    except TimeoutError:
        connection.settimeout(patience)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(65_536)


def _head(chance: random.Random, *headers: bytes, method: str | None = None) -> bytes:
    line = f"{method or chance.choice(METHODS)} {chance.choice(PATHS)} HTTP/1.1".encode()
    return b"\r\n".join([line, b"Host: localhost", b"Content-Type: application/json", b"Connection: close", *headers]) + b"\r\n\r\n"


def _plain(chance: random.Random) -> bytes:
    body = chance.choice(BODIES)
    return _head(chance, b"Content-Length: %d" % len(body), method="POST") + body


def _lying(chance: random.Random) -> bytes:
    body = chance.choice(BODIES)
    length = chance.choice(
        [
            b"0",
            b"1",
            b"%d" % (len(body) + 50),
            b"-1",
            b"+5",
            b"0x10",
            b"1e3",
            b"99999999999999999999",
            b"5, 5",
            b"",
            b"5\r\nContent-Length: 6",
        ]
    )
    return _head(chance, b"Content-Length: " + length) + body


def _chunked(chance: random.Random) -> bytes:
    sizes = [b"5", b"ffffffffffffffffff", b"-1", b"0x5", b"5;ext=1", b"zz", b"", b"00000005"]
    chunks = b"".join(
        chance.choice(sizes) + chance.choice([b"\r\n", b"\n", b"\r"]) + b'{"a":' + b"\r\n" for _ in range(chance.randint(0, 3))
    )
    coding = chance.choice([b"chunked", b"chunked, chunked", b"gzip, chunked", b"xchunked", b"chunked\r\nContent-Length: 5"])
    return _head(chance, b"Transfer-Encoding: " + coding, method="POST") + chunks + chance.choice([b"0\r\n\r\n", b"0\r\n", b""])


def _headers(chance: random.Random) -> bytes:
    odd = [
        b"Host: evil.org",
        b"X: " + b"a" * 40_000,
        b"No colon",
        b": empty",
        b"X : y",
        b"X: a\r\n folded",
        b"X: \xff\x00",
        b"Origin: null",
    ]
    odd += [b"Expect: 100-continue", b"Upgrade: websocket\r\nConnection: upgrade", b"Content-Type: text/xml", b"Content-Encoding: br"]
    return _head(chance, *chance.sample(odd, 2), b"Content-Length: 2") + b"{}"


def _line(chance: random.Random) -> bytes:
    target = chance.choice(
        ["/%ff%fe", "/api/libraries/%00/search", "/../../etc/passwd", "*", "http://evil.org/embed", "//x", "/\u00e9", "/" + "a" * 40_000]
    )
    version = chance.choice(["HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "", "HTCPCP/1.0"])
    return f"{chance.choice(METHODS)} {target} {version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")


def _noise(chance: random.Random) -> bytes:
    return chance.choice(
        [chance.randbytes(chance.randint(0, 2_000)), b"\r\n" * 500, b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    )


def _pipelined(chance: random.Random) -> bytes:
    one = b'POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"inputs": "a"}'
    return one * chance.randint(2, 5) + _plain(chance)
