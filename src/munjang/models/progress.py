"""How far a long work is, on standard error: a bar on a terminal, a line now and then where it is a file, or nothing at all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]

SECONDS_BETWEEN = 30.0
"""How long no plain line is written: short works write none."""


@contextmanager
def progress_bar(what: str, total: int | None, *, shown: bool, clock: Callable[[], float] = time.monotonic) -> Iterator[Advance]:
    """Yield a function that advances a bar with rate and time left; where standard error is no terminal, plain lines say the same."""
    if not shown:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        lines = ProgressLines(what, total, clock=clock)
        yield lines.advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    speed = TextColumn("{task.fields[rate]}")
    with Progress(*columns, speed, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(count: int) -> None:
            bar.advance(task, count)
            rate = bar.tasks[0].speed
            bar.update(task, rate=f"{rate:,.0f}/s" if rate else "")

        yield advance


class ProgressLines:
    """Writes how many of how many are done, how fast, and the time left, at most every half a minute."""

    def __init__(self, what: str, total: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._total, self._clock = what, total, clock
        self._started = self._told = clock()
        self._done = 0

    def advance(self, count: int) -> None:
        """Count what is done, and write a line if the last one is old."""
        self._done += count
        now = self._clock()
        if now - self._told < SECONDS_BETWEEN:
            return
        self._told = now
        rate = self._done / (now - self._started)
        of = f" of {self._total:,}" if self._total is not None else ""
        left = f", {format_duration((self._total - self._done) / rate)} left" if self._total is not None and rate else ""
        print(f"munjang: {self._what}: {self._done:,}{of}, {rate:,.0f}/s{left}", file=sys.stderr, flush=True)


def format_duration(seconds: float) -> str:
    """Write a duration.

    >>> format_duration(3725)
    '1:02:05'
    """
    whole = int(max(0, seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
