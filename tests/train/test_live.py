"""The live line on a terminal, one bar a stage, with loss, dev score, rate and time left; plain lines now and then elsewhere."""

from __future__ import annotations

import re
import sys

import pytest
from tests.terminal import Terminal

from munjang.train.progress import Live, StepNews, StepsOnly


def listened(monkeypatch: pytest.MonkeyPatch, *, is_one: bool) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(is_one=is_one)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Live() as live:
        live.show_message("regression learns from pairs.tsv [96 rows]")
        live.step(StepNews("first", 1, 2, 0.51234, None, 20.4, 65))
        live.step(StepNews("first", 2, 2, 0.4, 0.75, 21.0, 0))
        live.step(StepNews("second", 1, 9, 0.3, 0.5, 21.0, 3725))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())  # without colours


def test_a_terminal_shows_every_stage_with_its_news(monkeypatch: pytest.MonkeyPatch) -> None:
    written = listened(monkeypatch, is_one=True)
    assert "regression learns from pairs.tsv [96 rows]" in written
    assert "first" in written
    assert "2/2 loss 0.4000  dev 0.7500  21 pairs/s  0:00 left" in written
    assert "second" in written
    assert "1/9 loss 0.3000  dev 0.5000  21 pairs/s  1:02:05 left" in written


def test_a_file_gets_the_remarks_and_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listened(monkeypatch, is_one=False).splitlines() == [
        "regression learns from pairs.tsv [96 rows]",
        "first: step 2 of 2, loss 0.4000, dev 0.7500, 21 pairs/s, 0:00 left",
    ]


def test_a_file_gets_a_line_every_half_minute_and_at_evaluations(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    live = Live(clock=lambda: now)
    for step in range(1, 8):
        now += 12
        live.step(StepNews("first", step, 7, 0.5, 0.8, 12.0, 120.0, evaluated=step == 5))
    written = capsys.readouterr().err.splitlines()
    assert written == [f"first: step {step} of 7, loss 0.5000, dev 0.8000, 12 pairs/s, 2:00 left" for step in (3, 5, 7)]


def test_only_steps_are_shown_where_trainings_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    live = StepsOnly()
    live.show_message("the same of every run")
    live.step(StepNews("seed 1", 2, 2, 0.5, None, 12.0, 0.0))
    assert capsys.readouterr().err == "seed 1: step 2 of 2, loss 0.5000, 12 pairs/s, 0:00 left\n"
