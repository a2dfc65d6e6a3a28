"""No option takes nan or infinity, whichever command it belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.commands import COMMANDS, load_command

Munjang = Callable[..., Any]


def _numbers(munjang: Munjang) -> list[tuple[str, str]]:
    """Return every option that takes a number, with its command, as the help pages say."""
    names = [entry.name for entry in COMMANDS]
    for entry in COMMANDS:
        names += [f"{entry.name} {inner}" for inner in getattr(load_command(entry), "commands", {})]
    return [
        (name, option) for name in names for option in re.findall(r"(--[a-z-]+) (?:<float[> ]|FLOAT)", munjang(*name.split(), "--help").out)
    ]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_an_option_for_a_number_refuses_what_is_none(munjang: Munjang, value: str) -> None:
    options = _numbers(munjang)
    assert ("search", "--min-score") in options
    assert len(options) > 25
    for name, option in options:
        outcome = munjang(*name.split(), f"{option}={value}", *["x"] * 2)
        assert outcome.code == 2, (name, option, outcome)
        assert f"'{option}'" in outcome.err, (name, option, outcome.err)


def test_the_refusal_says_what_is_wrong(munjang: Munjang) -> None:
    outcome = munjang("search", "news.db", "rain", "--min-score", "nan")
    assert "Invalid value for '--min-score': nan is not a finite number" in outcome.err
    assert "finite number" in munjang("lint", "news.csv", "--scale", "0", "inf").err


@pytest.mark.parametrize("method", ["agglomerative", "communities"])
def test_a_threshold_that_no_cosine_reaches_is_refused(munjang: Munjang, texts_file: Path, tiny_bert_folder: Path, method: str) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    outcome = munjang("cluster", texts_file, "--method", method, "--threshold", "5", "--model", tiny_bert_folder)
    assert outcome.code == 2
    assert "--threshold" in outcome.err
    assert "5" in outcome.err
