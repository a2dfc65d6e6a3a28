"""A request's body, read while it streams: never more than the limit in memory, or on disk. How long a client may take is the protocol's
matter.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from munjang.limits import ServeLimits
from munjang.serve.errors import Disconnected, Overloaded, Refusal

Receive = Callable[[], Awaitable[Any]]

DISCARDED_BYTES = 64 * 2**20
"""What is read of a body that is too large, so that a client that is still sending sees the answer."""

DISCARD_SECONDS = 10.0


class Held:
    """Counts the bytes of all bodies in memory, or of all uploads on disk; any thread may give back."""

    def __init__(self, limit: int, what: str = "bodies of {:,} bytes are in memory", *, retry_after: int = 1) -> None:
        self.limit, self.bytes = limit, 0
        self._what, self._retry_after = what, retry_after
        self._lock = threading.Lock()

    def check(self, count: int) -> None:
        """Refuse when there is no room for so many bytes."""
        if self.bytes + count > self.limit:
            raise Overloaded(
                f"{self._what.format(self.bytes)}, the limit is {self.limit:,}\n  try again in {self._retry_after} s",
                retry_after=self._retry_after,
            )

    def add(self, count: int) -> None:
        """Take room, or refuse."""
        with self._lock:
            self.check(count)
            self.bytes += count

    def give_back(self, count: int) -> None:
        """Let others have the room."""
        with self._lock:
            self.bytes -= count

    @contextmanager
    def account(self) -> Iterator[list[int]]:
        """Give back at the end what was taken; the list holds what that is."""
        taken: list[int] = []
        try:
            yield taken
        finally:
            self.give_back(sum(taken))


async def read_body(receive: Receive, headers: Mapping[str, str], held: Held, taken: list[int], limits: ServeLimits) -> bytes:
    """Return the whole body; `taken` grows by what it holds of the common room."""
    limit = limits.max_body_bytes
    if _read_length(headers) > limit:
        await _too_large(receive, headers, limit, "body")
    pieces: list[bytes] = []
    size = 0
    async for piece, more in _pieces(receive):
        size += len(piece)
        if size > limit:
            pieces.clear()
            await _too_large(receive, headers, limit, "body", more=more)
        held.add(len(piece))
        taken.append(len(piece))
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def read_upload(
    receive: Receive, headers: Mapping[str, str], folder: Path, suffix: str, room: Held, limits: ServeLimits
) -> tuple[Path, int]:
    """Write the body to a new file in the folder; return its path, and its size, which stays taken of the room for uploads.

    Nothing is left behind where it fails.
    """
    limit = limits.max_upload_bytes
    declared = _read_length(headers)
    if declared > limit:
        await _too_large(receive, headers, limit, "file")
    room.check(declared)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False) as file:
        path = Path(file.name)
        size = 0
        try:
            async for piece, more in _pieces(receive):
                if size + len(piece) > limit:
                    await _too_large(receive, headers, limit, "file", more=more)
                room.add(len(piece))
                size += len(piece)
                file.write(piece)
            if not size:
                raise Refusal(400, "the body is empty, expected a file")
        except BaseException:
            path.unlink(missing_ok=True)
            room.give_back(size)
            raise
    return path, size


async def _pieces(receive: Receive) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield the pieces of a body, and of each whether more may follow."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        more = message.get("more_body", False)
        if piece := message.get("body", b""):
            yield piece, more


def _read_length(headers: Mapping[str, str]) -> int:
    written = headers.get("content-length", "0")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 20 else 0


async def _too_large(receive: Receive, headers: Mapping[str, str], limit: int, what: str, *, more: bool = True) -> None:
    """Read on for a while, if there is more to come, so that the client gets to hear it; then refuse."""
    refusal = Refusal(413, f"the {what} is larger than {limit:,} bytes, the limit")
    if "expect" in headers or _read_length(headers) > DISCARDED_BYTES:
        raise refusal
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            size = 0
            while more and size < DISCARDED_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        pass
    raise refusal
