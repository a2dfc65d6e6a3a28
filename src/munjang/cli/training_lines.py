"""What a long training says: a live line on a terminal, and a line of text now and then where standard error is a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from munjang.train.progress import Live, StepNews

SECONDS_BETWEEN = 60.0


class Lines(Live):
    """`Live`, and once a minute a plain line where nobody could see it move."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._told = clock, clock()

    def step(self, news: StepNews) -> None:
        """Move the live line, or write one if the last is a minute old or the work is done."""
        super().step(news)
        if sys.stderr.isatty() or (self._clock() - self._told < SECONDS_BETWEEN and news.step < news.total):
            return
        self._told = self._clock()
        dev = "" if news.dev is None else f", dev {news.dev:.4f}"
        pace = f"{news.pairs_per_second:.0f} rows/s, {news.seconds_left / 60:.0f} min left"
        self.said(f"{news.stage}: step {news.step:,} of {news.total:,}, loss {news.loss:.4f}{dev}, {pace}")
