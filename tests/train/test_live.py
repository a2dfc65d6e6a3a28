"""The live line: on a terminal only, one bar a stage, with loss, dev score, rate and time left."""

from __future__ import annotations

import re
import sys

import pytest
from tests.terminal import Terminal

from munjang.train.progress import Live, StepNews


def listened(monkeypatch: pytest.MonkeyPatch, *, is_one: bool) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(is_one=is_one)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Live() as live:
        live.said("regression learns from pairs.tsv [96 rows]")
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


def test_a_file_gets_the_remarks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listened(monkeypatch, is_one=False) == "regression learns from pairs.tsv [96 rows]\n"
