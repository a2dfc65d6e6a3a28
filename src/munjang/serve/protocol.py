"""uvicorn's HTTP protocol with a clock and bounds: slow or endless headers, clients that do not read, too many
connections, and a stop that loses no request.

Everything else (parsing, keep-alive, flow control) is uvicorn's and httptools'. Errors here happen before any route is known, so they have
Munjang's own shape.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from munjang.limits import SERVE_LIMITS, ServeLimits
from munjang.serve.one_write import OneWrite
from munjang.serve.refusals import Problem

DRAIN_SECONDS = 0.5
"""A stopping server keeps idle connections for so long: a request may be on its way."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    limits: ServeLimits = SERVE_LIMITS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._clock: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True
        self._draining = False
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock, or send a client away when too many are here."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._refuse(Problem(503, f"{self.limits.max_connections:,} connections are open, the limit", retry_after=1))
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
            self._refuse(Problem(431, f"the headers are larger than {self.limits.max_header_bytes:,} bytes, the limit"))
        elif not self._in_head and self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()  # each piece of a body has its time
            self._start_clock()
        elif self._clock is None and (self._head_bytes or not self._in_head):  # headers, and the rest of a body that was refused
            self._start_clock()

    def on_headers_complete(self) -> None:
        """Go on to the body."""
        self._in_head = False
        self._stop_clock()
        super().on_headers_complete()
        one = OneWrite(self.transport)
        self.cycle.transport = one  # type: ignore[assignment]  # what is used of it; the cycle's task has not begun
        self.cycle.on_response = lambda: self._answered(one)
        if self._draining:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Be ready for the next request's headers."""
        super().on_message_complete()
        self._stop_clock()
        self._in_head, self._head_bytes = True, 0

    def send_400_response(self, msg: str) -> None:
        """Say that this is no HTTP."""
        self._refuse(Problem(400, msg))

    def shutdown(self) -> None:
        """Let a request that is on its way in, answer it, and close."""
        self._draining = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return
        self.loop.call_later(DRAIN_SECONDS, self._close_if_idle)

    def _answered(self, one: OneWrite) -> None:
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

    def _start_clock(self) -> None:
        patience = self.limits.head_seconds if self._in_head else self.limits.body_seconds
        self._clock = self.loop.call_later(patience, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if self.flow.read_paused:  # it is we who do not read
            self._start_clock()
        elif not self.transport.is_closing():
            part, patience = ("headers", self.limits.head_seconds) if self._in_head else ("rest of the body", self.limits.body_seconds)
            self._refuse(Problem(408, f"the {part} did not come within {patience:g} s"))

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
            ]
            head += [f"{name}: {value}" for name, value in problem.headers.items()]
            self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        self.transport.close()
