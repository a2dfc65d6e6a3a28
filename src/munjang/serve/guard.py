"""What every request passes first, and every answer last: the Host, the origin, the key; a name, security headers, metrics and the log.

A Host header may hold localhost, an address, or a name that the server was told: a name that somebody else's DNS points here is refused. A
web page of another origin is refused unless it is listed. A request keeps the `x-request-id` that it comes with, if that is a plain word;
otherwise it gets one. It stands in the answer and in the log.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from munjang.serve.access_log import AccessLog
from munjang.serve.call import Seen
from munjang.serve.endpoint import Endpoint, Receive, Scope, Send, make_refusal, send_reply
from munjang.serve.errors import Dialect, Problem
from munjang.serve.keys import KeyRing
from munjang.serve.metrics import Metrics
from munjang.serve.settings import ServerSettings

App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
)
"""What an answer gets that does not say it itself."""
HOST = re.compile(r"(?:\[(?P<bracketed>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9._~!$&'()*+,;=%-]*))(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
"""RFC 3986's host and port; a name may be empty, as the HTTP standard lets it be."""
PAGE_FILES = "/page/"
"""The page's own files need no key: a browser asks for them before anyone can type one."""
REQUEST_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
"""What a client may call its request: nothing that could be taken for something else in a log or a header."""
GONE = 499
"""The status in the log of a request whose client did not wait."""


class Guard:
    """An ASGI app around the routes."""

    def __init__(
        self,
        app: App,
        settings: ServerSettings,
        keys: KeyRing,
        endpoints: Mapping[tuple[str, str], Endpoint],
        metrics: Metrics,
        log: AccessLog,
    ) -> None:
        self._app, self._settings, self._keys, self._endpoints = app, settings, keys, endpoints
        self._metrics, self._log = metrics, log
        self._open = {place for place, endpoint in endpoints.items() if endpoint.operation.open}
        self._hosts = {"localhost", *(host.lower().removesuffix(".") for host in (*settings.hosts, settings.host))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, seen = time.perf_counter(), Seen()
        scope["munjang.seen"] = seen
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        name = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(16).encode()
        client = scope.get("client")
        address = client[0] if client else None
        seen.id, seen.client = name.decode("ascii"), address
        answer = _Answer(send, self._find_origin(headers), name)
        try:
            await self._pass(scope, headers, receive, answer)
        finally:
            seconds = time.perf_counter() - start
            status = answer.status or GONE
            self._metrics.request(seen, status, seconds)
            self._log.request(seen, method=scope["method"], status=status, seconds=seconds, client=address, sent=answer.sent)

    async def _pass(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, answer: _Answer) -> None:
        problem = self._problem(scope, headers)
        if problem is not None:
            await send_reply(answer, make_refusal(problem, dialect_of(scope["path"])))
            return
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers and answer.origin is not None:
            await _preflight(answer)
            return
        endpoint = self._endpoints.get((scope["method"], scope["path"]))
        await (endpoint or self._app)(scope, receive, answer)

    def _problem(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Problem | None:
        if sum(name == b"host" for name, _ in scope["headers"]) != 1:
            return Problem(400, "expected exactly one Host header")
        host = headers[b"host"].decode("latin-1")
        name = host_name(host)
        if name is None:
            return Problem(400, "the Host header holds no host, expected a name or an address, and a port or none")
        if not self._known_host(name):
            return Problem(421, "the Host header holds a name that this server does not go by\n  start it with --allow-host NAME")
        origin = headers.get(b"origin")
        if origin is not None and self._find_origin(headers) is None and not _same_origin(origin.decode("latin-1"), host):
            return Problem(403, "pages of this origin may not call this server\n  start it with --allow-origin ORIGIN")
        asks_leave = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        if not len(self._keys) or (asks_leave and origin is not None) or self._needs_no_key(scope):
            return None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        key = self._keys.find(given.strip()) if kind.lower() == b"bearer" else None
        if key is None:
            return Problem(401, "this server wants its key: Authorization: Bearer KEY")
        seen: Seen = scope["munjang.seen"]
        seen.client = seen.key = key.name
        scope["munjang.key"] = key
        return None

    def _needs_no_key(self, scope: Scope) -> bool:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return (method, scope["path"]) in self._open or (method == "GET" and scope["path"].startswith(PAGE_FILES))

    def _known_host(self, name: str) -> bool:
        return name in self._hosts or is_address(name)

    def _find_origin(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        origin = headers.get(b"origin")
        return origin if origin is not None and origin.decode("latin-1") in self._settings.origins else None


class _Answer:
    """A send that adds headers and counts."""

    def __init__(self, send: Send, origin: bytes | None, name: bytes) -> None:
        self._send, self.origin, self._name = send, origin, name
        self.status = 0
        self.sent = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message["headers"]}
            headers = [*message["headers"], (b"x-request-id", self._name), *(header for header in SECURITY_HEADERS if header[0] not in own)]
            if self.origin is not None:
                headers += [(b"access-control-allow-origin", self.origin), (b"vary", b"Origin")]
            message = {**message, "headers": headers}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)


def dialect_of(path: str) -> Dialect:
    """Return the dialect that clients of a path speak.

    >>> dialect_of("/v1/embeddings"), dialect_of("/v1/embed"), dialect_of("/api/pairs"), dialect_of("/embed"), dialect_of("/embeddings")
    ('openai', 'cohere', 'munjang', 'tei', 'infinity')
    """
    if path.startswith("/v2/") or path in ("/v1/rerank", "/v1/embed"):
        return "cohere"
    if path.startswith("/v1/"):
        return "openai"
    if path in ("/embeddings", "/models"):
        return "infinity"
    return "munjang" if path.startswith(("/api", "/page", "/docs", "/openapi")) else "tei"


async def _preflight(answer: _Answer) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", b"authorization, content-type"),
        (b"access-control-max-age", b"600"),
    ]
    await answer({"type": "http.response.start", "status": 204, "headers": headers})
    await answer({"type": "http.response.body", "body": b""})


def host_name(host: str) -> str | None:
    """Return a Host header's name or address in lower case, without port, brackets and the root's dot; None where it is malformed.

    >>> host_name("LocalHost.:8080"), host_name("[::1]:80"), host_name("::1"), host_name("me@localhost"), host_name("localhost:http")
    ('localhost', '::1', None, None, None)
    """
    found = HOST.fullmatch(host)
    if found is None or (found["port"] and int(found["port"]) > 65_535):
        return None
    if found["bracketed"] is not None:
        address = found["bracketed"].lower()
        return address if ":" in address and is_address(address) else None
    return str(found["name"]).lower().removesuffix(".")


def is_address(name: str) -> bool:
    """Say whether this is an IP address; one with a zone, which means something to another machine only, is none."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return "%" not in name


def _same_origin(origin: str, host: str) -> bool:
    return origin.partition("://")[2].lower() == host.lower()
