"""A transport for one answer: its head waits for the first piece of its body, and both leave in one write.

Most answers are one piece. Two writes would be two system calls, two packets, and two wake-ups of the client.
"""

from __future__ import annotations

import asyncio

CONTINUE = b"HTTP/1.1 100"
"""How the line begins that asks for a body; it is no head of an answer."""


class OneWrite:
    """What uvicorn's cycle needs of a transport."""

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
