"""One JSON line per request: when, what route, which status, how long, how much, whose.

Never a text, a key (only its name), a query or a path as it was typed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

import orjson

from munjang.serve.call import Seen

FLUSH_SECONDS = 0.2
"""Lines are written together; a crash loses at most so much."""


class AccessLog:
    """Writes lines to a stream; belongs to one event loop."""

    def __init__(self, stream: BinaryIO | None, *, clock: Callable[[], float] = time.time) -> None:
        self._stream, self._clock = stream, clock
        self._lines: list[bytes] = []

    def request(self, seen: Seen, *, method: str, status: int, seconds: float, client: str | None, sent: int) -> None:
        """Write a line, soon."""
        if self._stream is None:
            return
        line = {
            "time": round(self._clock(), 3),
            "method": method,
            "route": seen.route,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "client": client,
            "key": seen.key,
            "id": seen.id,
            "texts": seen.texts,
            "tokens": seen.tokens,
            "truncated": len(seen.truncated),
            "bytes": sent,
        }
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        """Write what is waiting; a log that cannot be written is given up, the server is not."""
        lines, self._lines = b"".join(self._lines), []
        if not lines or self._stream is None:
            return
        try:
            self._stream.write(lines)
            self._stream.flush()
        except OSError:
            self._stream = None
            print("munjang: the access log cannot be written any more; serving goes on without it", file=sys.stderr)
