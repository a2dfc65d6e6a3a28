"""docs/from-sentence-transformers.md: its blocks run, and every name in it exists on the side on which it stands."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import munjang as munjang
from tests.website.running import run_page

from munjang import CrossEncoder, SentenceEncoder
from munjang.other_names import ENCODE, LOAD, PREDICT, RANK

ROOT = Path(__file__).parents[2]
PAGES = [
    (ROOT / name).read_text(encoding="utf-8") for name in ("docs/from-sentence-transformers.md", "docs/ko/from-sentence-transformers.md")
]
ROW = re.compile(r"^\| ([`–].*?) \| (.+?) \|", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def test_every_block_runs(munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run_page(PAGES[0], munjang)) == 4


def test_both_languages_map_the_same_names() -> None:
    english, korean = ([CODE.findall(row[0]) + CODE.findall(row[1]) for row in ROW.findall(page)] for page in PAGES)
    assert english == korean
    assert len(english) > 60


def test_the_losses_and_evaluators_are_those_of_sentence_transformers() -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    there: set[str] = set()
    for name in ("losses", "evaluation"):
        with contextlib.suppress(ImportError):
            there |= set(dir(importlib.import_module(f"sentence_transformers.sentence_transformer.{name}")))
    named = set(re.findall(r"`(\w+(?:Loss|Evaluator))`", PAGES[0]))
    assert len(named) > 20
    assert named <= there


def test_the_objectives_and_tasks_are_ours() -> None:
    pytest.importorskip("torch", reason="the extra train is not installed")
    from munjang.cli.evaluate import app
    from munjang.train.card import LOSSES

    losses = dict(re.findall(r"^\| `(\w+Loss)` \| `(\w+)`", PAGES[0], re.MULTILINE))
    ours = {theirs: name for name, theirs in LOSSES.items() if losses.get(theirs) == name}
    assert losses.items() >= ours.items()
    assert len(ours) >= 12
    tasks = set(re.findall(r"`munjang evaluate (\w+)`", PAGES[0]))
    assert len(tasks) == 8
    assert tasks <= {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}


@pytest.mark.parametrize(
    ("table", "functions"),
    [
        (ENCODE, [SentenceEncoder.encode]),
        (LOAD, [SentenceEncoder.load, CrossEncoder.load]),
        (PREDICT, [CrossEncoder.predict]),
        (RANK, [CrossEncoder.rank]),
    ],
    ids=["encode", "load", "predict", "rank"],
)
def test_an_argument_that_the_page_gives_a_new_name_is_explained_by_an_error(
    table: dict[str, str], functions: list[Callable[..., Any]]
) -> None:
    taken = {name for function in functions for name in inspect.signature(function).parameters}
    assert not table.keys() & taken
    named = set(re.findall(r"\w+", " ".join(" ".join(row) for row in ROW.findall(PAGES[0]))))
    assert len(named & table.keys()) >= 3
