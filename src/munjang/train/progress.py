"""What a training says while it runs: a value per step, and a live line on a terminal.

The loop calls `Progress.step` and `Progress.said`; who listens decides what to show. `Live` shows step, loss, dev score, pairs per second
and the time left with rich, on standard error; `Silent` shows nothing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol


@dataclass(frozen=True)
class StepNews:
    """How a training stands after a step."""

    stage: str
    step: int
    total: int
    loss: float
    dev: float | None
    pairs_per_second: float
    seconds_left: float


class Progress(Protocol):
    """Listens to a training."""

    def said(self, line: str) -> None:
        """Take a remark: which objective was chosen, what was left out."""
        ...

    def step(self, news: StepNews) -> None:
        """Take the news of one step."""
        ...


class Silent:
    """Listens and shows nothing."""

    def said(self, line: str) -> None:
        """Drop a remark."""

    def step(self, news: StepNews) -> None:
        """Drop the news."""


class Live:
    """Shows remarks as lines, and the newest step as one live line where standard error is a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def said(self, line: str) -> None:
        """Print a remark."""
        self._console.print(line, markup=False, soft_wrap=True)

    def step(self, news: StepNews) -> None:
        """Move the live line."""
        if not sys.stderr.isatty():
            return
        if self._bar is None or news.stage != self._stage:
            self._start(news)
        dev = "–" if news.dev is None else f"{news.dev:.4f}"
        text = f"loss {news.loss:.4f}  dev {dev}  {news.pairs_per_second:.0f} pairs/s  {_clock(news.seconds_left)} left"
        self._bar.update(self._task, completed=news.step, total=news.total, news=text)

    def _start(self, news: StepNews) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        if self._bar is not None:
            self._bar.stop()
        self._stage = news.stage
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[news]}"), console=self._console
        )
        self._task = self._bar.add_task(news.stage, total=news.total, news="")
        self._bar.start()


def _clock(seconds: float) -> str:
    """Write a duration.

    >>> _clock(3725)
    '1:02:05'
    """
    whole = int(max(0, seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
