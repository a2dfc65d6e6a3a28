"""A progress bar on standard error, or nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress_bar(what: str, total: int | None, *, shown: bool) -> Iterator[Advance]:
    """Yield a function that advances a bar with rate and time left; a bar only shows on a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _: None
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
