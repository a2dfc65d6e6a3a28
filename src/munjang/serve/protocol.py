"""uvicorn's HTTP protocol with a clock and bounds: slow or endless headers and bodies, clients that do not read, too many
connections, and a stop that loses no request.

A body must come with a rate: it has `body_seconds` and one second more for every `body_rate` bytes that are here. When `max_connections`
are open, a few more are still taken, which get an answer from the routes for probes and a refusal from all others. A client may close its
side behind its request and still gets its answer; whether it is there at all is asked with a 100 (Continue), which clients pass over.

Everything else (parsing, keep-alive, flow control) is uvicorn's and httptools'. Errors here happen before any route is known, so they have
Munjang's own shape.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from munjang.limits import SERVE_LIMITS, ServeLimits
from munjang.serve.errors import Problem

DRAIN_SECONDS = 0.5
"""A stopping server keeps idle connections for so long: a request may be on its way."""

SPARE_SECONDS = 2.0
"""For the headers of a request on a spare connection."""

PROBES = frozenset({"/health", "/ping", "/metrics"})
"""What spare connections may ask for."""

ASK_SECONDS = (0.05, 2.0)
"""Between two questions whether a client that has closed its side is there: at first, and at most."""


class HeadersTooLarge(Exception):
    """Raised into the parser, which then parses no further."""


class TooManyConnections(Exception):
    """A spare connection asks for something else than it may."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    limits: ServeLimits = SERVE_LIMITS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._clock: asyncio.TimerHandle | None = None
        self._head_bytes = self._counted_bytes = 0
        self._in_head = True
        self._draining = False
        self._spare = False
        self._body_start, self._body_bytes = 0.0, 0
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock, or send a client away when too many are here."""
        super().connection_made(transport)
        self._spare = len(self.connections) > self.limits.max_connections
        if len(self.connections) > self.limits.max_connections + self.limits.spare_connections:
            self._refuse_crowd()
            return
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._stop_clock()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Look after a while whether the client takes anything."""
        super().pause_writing()
        self._await_progress()

    def resume_writing(self) -> None:
        """Stop looking: the client takes its answer."""
        self._stop_watching()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse, as long as the headers stay within their bounds."""
        if self.transport.is_closing() or self.parser is None:
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > self.limits.max_header_bytes:
            self._refuse_headers()
        elif self._clock is None and (self._head_bytes or not self._in_head):  # headers, or a body
            self._start_clock()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose client has said all that it will say and waits for the answer; close any other."""
        waits = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        if not waits or self.transport.is_closing():
            return False
        self.cycle.keep_alive = False
        self._ask_if_there(self.cycle, ASK_SECONDS[0])
        return True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count headers that come all at once, too."""
        super().on_header(name, value)
        self._counted_bytes += len(name) + len(value) + 4
        if self._counted_bytes + len(self.url) > self.limits.max_header_bytes:
            raise HeadersTooLarge

    def on_message_begin(self) -> None:
        """Begin to count."""
        super().on_message_begin()
        self._counted_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Count what has come of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Go on to the body."""
        if len(self.url) > self.limits.max_header_bytes:
            raise HeadersTooLarge
        self._in_head = False
        self._stop_clock()
        self._body_start, self._body_bytes = self.loop.time(), 0
        if self._spare and self.url.partition(b"?")[0].decode("latin-1") not in PROBES:
            raise TooManyConnections
        super().on_headers_complete()
        one = OneWrite(self.transport)
        self.cycle.transport = one  # type: ignore[assignment]  # what is used of it; the cycle's task has not begun
        self.cycle.on_response = lambda: self._finish_answer(one)
        if self._draining or self._spare:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Be ready for the next request's headers."""
        super().on_message_complete()
        self._stop_clock()
        self._in_head, self._head_bytes = True, 0

    def send_400_response(self, msg: str) -> None:
        """Say that this is no HTTP, or more than is taken."""
        cause = sys.exception()
        reason = None if cause is None else cause.__context__
        if isinstance(reason, HeadersTooLarge):
            self._refuse_headers()
        elif isinstance(reason, TooManyConnections):
            self._refuse_crowd()
        else:
            self._refuse(Problem(400, msg))

    def shutdown(self) -> None:
        """Let a request that is on its way in, answer it, and close."""
        self._draining = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return
        self.loop.call_later(DRAIN_SECONDS, self._close_if_idle)

    def _finish_answer(self, one: OneWrite) -> None:
        one.flush()
        self.on_response_complete()

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _await_progress(self) -> None:
        self._send_timer = self.loop.call_later(self.limits.send_seconds, self._check_progress, self.transport.get_write_buffer_size())

    def _stop_watching(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _check_progress(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._await_progress()
        else:
            self.transport.abort()

    def _ask_if_there(self, cycle: Any, again_after: float) -> None:
        """Write what only the system of a client that is gone answers, with a reset; the next write then ends the connection."""
        if cycle.response_started or cycle.disconnected or self.transport.is_closing():
            return
        if cycle.scope["http_version"] == "1.1" and self.cycle is cycle and not self.pipeline:
            self.transport.write(CONTINUE + b" Continue\r\n\r\n")
        self.loop.call_later(again_after, self._ask_if_there, cycle, min(2 * again_after, ASK_SECONDS[1]))

    def _start_clock(self) -> None:
        if not self._in_head:
            self._clock = self.loop.call_at(self._body_deadline(), self._too_slow)
            return
        self._clock = self.loop.call_later(SPARE_SECONDS if self._spare else self.limits.head_seconds, self._too_slow)

    def _body_deadline(self) -> float:
        return self._body_start + self.limits.body_seconds + self._body_bytes / self.limits.body_rate

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # it is we who do not read
            self._body_start = self.loop.time()
            self._start_clock()
        elif self._in_head:
            self._refuse(Problem(408, f"the headers did not come within {self.limits.head_seconds:g} s"))
        elif self._body_deadline() > self.loop.time():
            self._start_clock()
        else:
            pace = f"{self.limits.body_seconds:g} s and 1 s more for every {self.limits.body_rate:,} bytes"
            self._refuse(Problem(408, f"the body did not come within {pace}"))

    def _refuse_headers(self) -> None:
        self._refuse(Problem(431, f"the headers are larger than {self.limits.max_header_bytes:,} bytes, the limit"))

    def _refuse_crowd(self) -> None:
        self._refuse(Problem(503, f"{self.limits.max_connections:,} connections are open, the limit", retry_after=1))

    def _refuse(self, problem: Problem) -> None:
        """Answer without a route and close; where the answer to another request is under way, only close."""
        first = not self.pipeline  # the newest request does not wait behind another
        own = first and not self._in_head and self.cycle is not None and not self.cycle.response_started
        if own or self.cycle is None or self.cycle.response_complete:
            body = orjson.dumps(problem.body("munjang"))
            head = [
                f"HTTP/1.1 {problem.status} Refused",
                "content-type: application/json",
                f"content-length: {len(body)}",
                "connection: close",
                f"x-request-id: {secrets.token_hex(16)}",
            ]
            head += [f"{name}: {value}" for name, value in problem.headers.items()]
            self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        self.transport.close()


CONTINUE = b"HTTP/1.1 100"
"""How the line begins that asks for a body; it is no head of an answer."""


class OneWrite:
    """A transport for one answer: its head waits for the first piece of its body, and both leave in one write.

    Most answers are one piece. Two writes would be two system calls, two packets, and two wake-ups of the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self._started = False

    def write(self, data: bytes) -> None:
        """Keep the head, write everything else at once."""
        if self._started:
            head, self._head = self._head or b"", None
            self._transport.write(head + data)
        elif data.startswith(CONTINUE):
            self._transport.write(data)
        else:
            self._started, self._head = True, data

    def flush(self) -> None:
        """Write a head that has no body."""
        if self._head is not None:
            self.write(b"")

    def close(self) -> None:
        """Write what waits, then close."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Say whether the connection ends."""
        return self._transport.is_closing()
