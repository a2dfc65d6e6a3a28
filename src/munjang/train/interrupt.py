"""Ctrl-C, or a polite kill, while a model trains: the step is finished, a checkpoint is written, and `Interrupted` says where it stands.

In: SIGINT and SIGTERM, where nobody else listens to them. Out: a `StopRequest` that the training looks at between two steps. A second
Ctrl-C does not wait for the step: the training stops at once and stands at its last checkpoint. Needs no torch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

_WAIT = b"\nmunjang: interrupted; a checkpoint is written after this step (once more to stop at once)\n"


class Interrupted(KeyboardInterrupt):
    """A training was stopped on request and can go on from what stands in its folder."""

    def __init__(self, message: str, *, number: int = signal.SIGINT, is_shared: bool = False) -> None:
        super().__init__(message)
        self.exit_code = 128 + number
        self.is_shared = is_shared
        """Whether several processes trained together, so that the command that started them is not known here."""


@dataclass
class StopRequest:
    """Which signal asked the training to stop; None as long as none did."""

    number: int | None = None


@contextlib.contextmanager
def catch_stop() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; signals that the caller's program handles itself are left alone."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # Python gives signals to the main thread alone
        yield request
        return

    def ask(number: int, _frame: FrameType | None) -> None:
        if request.number is not None:
            raise KeyboardInterrupt
        request.number = number
        # not through sys.stderr: the signal may have come in the middle of a write to it
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.write(sys.__stderr__.fileno(), _WAIT)  # type: ignore[union-attr]

    usual: dict[signal.Signals, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    taken = [number for number, handler in usual.items() if signal.getsignal(number) == handler]
    for number in taken:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        for number in taken:
            signal.signal(number, usual[number])
