"""Lines of a long training where standard error is no terminal."""

from __future__ import annotations

import pytest

from munjang.cli.training_lines import Lines
from munjang.train.progress import StepNews


def test_a_line_is_written_once_a_minute_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(clock=lambda: now)
    for step in range(1, 6):
        now += 25
        lines.step(StepNews("first", step, 5, 0.5, 0.8, 12.0, 120.0))
    written = capsys.readouterr().err.splitlines()
    assert written == [f"first: step {step} of 5, loss 0.5000, dev 0.8000, 12 rows/s, 2 min left" for step in (3, 5)]
