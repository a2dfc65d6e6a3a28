"""Work on a store that may be repeated: as the only writer in turn, or as a reader, while its server comes and goes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import chain, repeat
from typing import TypeVar

from munjang.errors import UsageError
from munjang.library.store import CommitUnknown, ServerLost, Store

Value = TypeVar("Value")

READ_PAUSES = (0.05, 0.5)
"""Seconds before a read is tried again after a server ended the connection."""


class WriterTurns:
    """One library's turns among all writers of a store; `patience` is how many seconds a call waits that does not say so itself."""

    def __init__(self, store: Store, patience: float) -> None:
        self._store = store
        self.patience = _check_patience(patience)

    def take(self, purpose: str, patience: float | None) -> AbstractContextManager[None]:
        """Wait for one turn and hold it."""
        return self._store.writer(purpose, patience=self.choose(patience))

    def repeat(self, purpose: str, work: Callable[[], Value], *, wrote: Callable[[Value], bool], patience: float | None = None) -> Value:
        """Do work that may be repeated as the only writer; repeat it when the store's server was lost, while patience lasts.

        Where the server was lost in a commit, and repeating writes nothing, the commit had taken place, and its result counts.
        """
        end = time.monotonic() + self.choose(patience)
        unknown: CommitUnknown | None = None
        for pause in chain((0.02, 0.05, 0.1, 0.2, 0.5), repeat(1.0)):
            try:
                with self._store.writer(purpose, patience=max(0.0, end - time.monotonic())):
                    result = work()
                return unknown.result if unknown is not None and unknown.result is not None and not wrote(result) else result
            except ServerLost as error:
                unknown = error if isinstance(error, CommitUnknown) else unknown
                if time.monotonic() + pause >= end:
                    raise unknown or error from None
                time.sleep(pause)
        raise AssertionError("the pauses never end")

    def choose(self, patience: float | None) -> float:
        """Return how many seconds a call waits that asks for so many, or does not say."""
        return self.patience if patience is None else _check_patience(patience)


def read_again(work: Callable[[], Value]) -> Value:
    """Read, and again when the store's server ended the connection, as in a restart."""
    for pause in READ_PAUSES:
        try:
            return work()
        except ServerLost:
            time.sleep(pause)
    return work()


def _check_patience(seconds: float) -> float:
    if not 0 <= seconds < math.inf:
        raise UsageError(f"patience is {seconds!r}, expected a number of seconds, at least 0")
    return seconds
