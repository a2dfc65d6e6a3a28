"""What every request passes first, and every answer last: the Host, the origin, the key; security headers, metrics and the log.

A Host header may hold localhost, an address, or a name that the server was told: a name that somebody else's DNS points here is refused. A
web page of another origin is refused unless it is listed. Keys are compared in constant time.
"""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from munjang.serve.access_log import AccessLog
from munjang.serve.call import Seen
from munjang.serve.endpoint import Endpoint, Receive, Scope, Send, refused, send_reply
from munjang.serve.metrics import Metrics
from munjang.serve.refusals import Dialect, Problem
from munjang.serve.settings import Settings

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
PAGE_FILES = "/page/"
"""The page's own files need no key: a browser asks for them before anyone can type one."""
GONE = 499
"""The status in the log of a request whose client did not wait."""


class Guard:
    """An ASGI app around the routes."""

    def __init__(
        self, app: App, settings: Settings, endpoints: Mapping[tuple[str, str], Endpoint], metrics: Metrics, log: AccessLog
    ) -> None:
        self._app, self._settings, self._endpoints = app, settings, endpoints
        self._metrics, self._log = metrics, log
        self._key = None if settings.key is None else settings.key.encode()
        self._open = {place for place, endpoint in endpoints.items() if endpoint.operation.open}
        self._hosts = {"localhost", *(host.lower() for host in settings.hosts), settings.host.lower()}

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
        answer = _Answer(send, self._allowed_origin(headers))
        try:
            await self._pass(scope, headers, receive, answer)
        finally:
            seconds = time.perf_counter() - start
            status = answer.status or GONE
            self._metrics.request(seen, status, seconds)
            client = scope.get("client")
            self._log.request(
                seen, method=scope["method"], status=status, seconds=seconds, client=client[0] if client else None, sent=answer.sent
            )

    async def _pass(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, answer: _Answer) -> None:
        problem = self._problem(scope, headers)
        if problem is not None:
            await send_reply(answer, refused(problem, dialect_of(scope["path"])))
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
        if not self._known_host(host):
            return Problem(421, "the Host header holds a name that this server does not go by\n  start it with --allow-host NAME")
        origin = headers.get(b"origin")
        if origin is not None and self._allowed_origin(headers) is None and not _same_origin(origin.decode("latin-1"), host):
            return Problem(403, "pages of this origin may not call this server\n  start it with --allow-origin ORIGIN")
        asks_leave = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        if self._key is None or (asks_leave and origin is not None) or self._needs_no_key(scope):
            return None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._key):
            return Problem(401, "this server wants its key: Authorization: Bearer KEY")
        return None

    def _needs_no_key(self, scope: Scope) -> bool:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return (method, scope["path"]) in self._open or (method == "GET" and scope["path"].startswith(PAGE_FILES))

    def _known_host(self, host: str) -> bool:
        name = _without_port(host)
        if name.lower() in self._hosts:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _allowed_origin(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        origin = headers.get(b"origin")
        return origin if origin is not None and origin.decode("latin-1") in self._settings.origins else None


class _Answer:
    """A send that adds headers and counts."""

    def __init__(self, send: Send, origin: bytes | None) -> None:
        self._send, self.origin = send, origin
        self.status = 0
        self.sent = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message["headers"]}
            headers = [*message["headers"], *(header for header in SECURITY_HEADERS if header[0] not in own)]
            if self.origin is not None:
                headers += [(b"access-control-allow-origin", self.origin), (b"vary", b"Origin")]
            message = {**message, "headers": headers}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)


def dialect_of(path: str) -> Dialect:
    """Return the dialect that clients of a path speak.

    >>> dialect_of("/v1/embeddings"), dialect_of("/v2/rerank"), dialect_of("/api/pairs"), dialect_of("/embed")
    ('openai', 'cohere', 'munjang', 'tei')
    """
    if path in ("/v1/rerank", "/v2/rerank"):
        return "cohere"
    if path.startswith("/v1/"):
        return "openai"
    return "munjang" if path.startswith(("/api", "/page", "/docs", "/openapi")) else "tei"


async def _preflight(answer: _Answer) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", b"authorization, content-type"),
        (b"access-control-max-age", b"600"),
    ]
    await answer({"type": "http.response.start", "status": 204, "headers": headers})
    await answer({"type": "http.response.body", "body": b""})


def _without_port(host: str) -> str:
    """Return a Host header's name.

    >>> _without_port("localhost:8080"), _without_port("[::1]:80")
    ('localhost', '[::1]')
    """
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _same_origin(origin: str, host: str) -> bool:
    return origin.partition("://")[2].lower() == host.lower()
