"""What a training says while it runs: a value per step, shown as a live line on a terminal and as plain lines elsewhere.

The loop calls `Progress.step` and `Progress.show_message`; who listens decides what to show. `Live` shows step, loss, dev score, pairs per
second and the time left on standard error, moving with rich on a terminal, as a line now and then in a file; `Silent` shows nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from munjang.models.progress import SECONDS_BETWEEN, format_duration


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
    evaluated: bool = False
    """Whether `dev` is of this very step."""


class Progress(Protocol):
    """Listens to a training."""

    def show_message(self, line: str) -> None:
        """Take a remark: which objective was chosen, what was left out."""
        ...

    def step(self, news: StepNews) -> None:
        """Take the news of one step."""
        ...


class Silent:
    """Listens and shows nothing."""

    def show_message(self, line: str) -> None:
        """Drop a remark."""

    def step(self, news: StepNews) -> None:
        """Drop the news."""


class Live:
    """Shows remarks as lines; the newest step as one live line on a terminal, elsewhere as a plain line now and then."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console

        self._clock, self._told = clock, clock()
        self._console = Console(stderr=True, highlight=False)
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show_message(self, line: str) -> None:
        """Print a remark."""
        self._console.print(line, markup=False, soft_wrap=True)

    def step(self, news: StepNews) -> None:
        """Move the live line, or write one where nobody could see it move."""
        if not sys.stderr.isatty():
            self._write(news)
            return
        if self._bar is None or news.stage != self._stage:
            self._start(news)
        dev = "–" if news.dev is None else f"{news.dev:.4f}"
        text = f"loss {news.loss:.4f}  dev {dev}  {news.pairs_per_second:.0f} pairs/s  {format_duration(news.seconds_left)} left"
        self._bar.update(self._task, completed=news.step, total=news.total, news=text)

    def _write(self, news: StepNews) -> None:
        if self._is_due(news):
            self.show_message(_format_line(news))

    def _is_due(self, news: StepNews) -> bool:
        """Say whether a plain line is to be written: after an evaluation, at the end, and where the last one is old."""
        is_due = news.evaluated or news.step == news.total or self._clock() - self._told >= SECONDS_BETWEEN
        self._told = self._clock() if is_due else self._told
        return is_due

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


class StepsOnly(Live):
    """`Live` without the remarks, where one training follows another and each would say the same."""

    def show_message(self, line: str) -> None:
        """Drop a remark."""

    def _write(self, news: StepNews) -> None:
        if self._is_due(news):
            super().show_message(_format_line(news))


def _format_line(news: StepNews) -> str:
    dev = "" if news.dev is None else f", dev {news.dev:.4f}"
    pace = f"{news.pairs_per_second:.0f} pairs/s, {format_duration(news.seconds_left)} left"
    return f"{news.stage}: step {news.step:,} of {news.total:,}, loss {news.loss:.4f}{dev}, {pace}"
