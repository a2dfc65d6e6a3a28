"""A process of our own that reads what a stranger's file holds, and answers in lines of JSON.

Whatever the file makes a parser do (hang, crash, eat memory, never stop writing), it happens there: this side only reads lines, of limited
length, and may end the process at any moment. Where the system can, the memory of the process is bounded and it dies with its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


class ChildProcess:
    """Runs a command; the first line that it reads is `order`."""

    def __init__(self, command: Sequence[str], order: object) -> None:
        path = os.pathsep.join(each for each in sys.path if each)
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback may hold a file's text
            env={**os.environ, "PYTHONPATH": path, "RUST_BACKTRACE": "0"},
        )
        self.send(order)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, value: object) -> None:
        """Write a line to it; if it has died, `receive` says so."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, most_bytes: int) -> dict[str, Any] | int:
        """Return its next answer; or, where it ended or the line is too long, how many bytes of one came."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline(most_bytes)
        if not line.endswith(b"\n"):
            return len(line)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End it, whatever it is doing; may be called from any thread, at any time."""
        self._process.kill()

    def close(self) -> int:
        """End it, close the pipes, and return its exit code."""
        self._process.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()


def bound_process(*, memory_bytes: int, cpu_seconds: int | None = None, may_write_files: bool = True) -> None:
    """Bound this process, and let it die with its parent, each where the system knows how."""
    with suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_DATA: memory_bytes}
        if cpu_seconds is not None:
            limits[resource.RLIMIT_CPU] = cpu_seconds
        if not may_write_files:
            limits[resource.RLIMIT_FSIZE] = 0
        for kind, limit in limits.items():
            resource.setrlimit(kind, (limit, limit))
    with suppress(AttributeError, OSError, TypeError):  # Linux; it ends even a process that runs no Python
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
