"""Ctrl-C and a polite kill: the step is finished, a checkpoint is written, the command to go on with is named, and it ends the same."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.forked import Forks

from munjang.train.durable import hash_file
from munjang.train.interrupt import catch_stop

RECIPE = """
output = "{output}"
seed = 7
checkpoint_every = 1000
[model]
scratch = {{ vocabulary = 200, layers = 2, width = 32, heads = 2, inner = 64, positions = 64 }}
[[stage]]
objective = "regression"
epochs = 2
learning_rate = 1e-3
evaluate_every = 5
dev = {{ path = "pairs.tsv", label_range = [0, 5] }}
data = [{{ path = "pairs.tsv", label_range = [0, 5] }}]
[[stage]]
name = "second"
objective = "in_batch"
data = [{{ path = "pairs.tsv", texts = ["sentence1", "sentence2"] }}]
dev = {{ path = "pairs.tsv", label_range = [0, 5] }}
"""

RUN = """
import json, os, sys
from munjang.cli.main import run
from munjang.train.stage_run import Stepper
from munjang.train.dev import DevSet
arguments, kind, count, number = json.loads(sys.argv[1])
seen = 0
def struck(real):
    def call(*given):
        global seen
        seen += 1
        if seen == count:
            os.kill(os.getpid(), number)
        return real(*given)
    return call
Stepper.run = struck(Stepper.run) if kind == "step" else Stepper.run
DevSet.score = struck(DevSet.score) if kind == "dev" else DevSet.score
sys.exit(run(arguments))
"""


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(forks: Forks) -> Command:
    """Run a command that a signal strikes in the `count`-th step or evaluation, with the step or evaluation still to be done."""

    def run(arguments: list[str], folder: Path, kind: str = "none", count: int = 0, number: int = 0) -> subprocess.CompletedProcess[str]:
        return forks.run(RUN, json.dumps([arguments, kind, count, number]), folder=folder)

    return run


def test_interrupted_and_resumed_it_ends_the_same(command: Command, pairs_file: Path) -> None:
    folder = pairs_file.parent
    for name in ("whole", "broken"):
        (folder / f"{name}.toml").write_text(RECIPE.format(output=name), encoding="utf-8")
    whole = command(["train", "whole.toml"], folder)
    assert whole.returncode == 0
    # where standard error is no terminal, evaluations and the end are lines
    lines = [line for line in whole.stderr.splitlines() if ": step " in line]
    assert [line.split(",")[0] for line in lines] == [f"stage 1: step {step} of 12" for step in (5, 10, 12)] + ["second: step 6 of 6"]
    assert all(", loss " in line and ", dev " in line and " pairs/s, " in line and line.endswith(" left") for line in lines)
    first = command(["train", "broken.toml"], folder, "step", 7, signal.SIGINT)
    assert first.returncode == 130, first.stderr
    assert "interrupted after step 7 of 12 of stage 1; a checkpoint is in broken/training/checkpoints" in first.stderr
    assert first.stderr.endswith("  resume with: munjang train broken.toml --resume\n")
    again = shlex.split(first.stderr.splitlines()[-1].split(": munjang ")[1])
    # the third evaluation of the second run is the one before the second stage
    second = command(again, folder, "dev", 3, signal.SIGTERM)
    assert second.returncode == 143, second.stderr
    assert "goes on from the checkpoint after step 7 of stage 1" in second.stderr
    assert "interrupted after step 0 of 6 of second" in second.stderr
    assert second.stderr.endswith("  resume with: munjang train broken.toml --resume\n")
    last = command(again, folder)
    assert last.returncode == 0, last.stderr
    assert "goes on from the checkpoint before the first step of second" in last.stderr
    for name in ("model.safetensors", "training/log.jsonl", "tokenizer.json"):
        assert hash_file(folder / "whole" / name) == hash_file(folder / "broken" / name), name
    done = command(again, folder)
    assert "broken: every step was done, the model is saved again" in done.stderr


def test_a_resume_without_a_checkpoint_says_that_it_starts_anew(command: Command, pairs_file: Path) -> None:
    folder = pairs_file.parent
    (folder / "new.toml").write_text(RECIPE.format(output="new"), encoding="utf-8")
    found = command(["train", "new.toml", "--resume", "--set", "stage.0.steps=1"], folder, "step", 1, signal.SIGKILL)
    assert "new: no earlier training is there, so it starts over" in found.stderr
    found = command(["train", "new.toml", "--resume", "--set", "stage.0.steps=1"], folder, "step", 1, signal.SIGINT)
    assert "new: the earlier training left no checkpoint, so it starts over" in found.stderr
    assert found.returncode == 130


def test_a_signal_is_a_request_and_the_second_one_does_not_wait(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    with catch_stop() as request:
        assert request.number is None
        os.kill(os.getpid(), signal.SIGINT)
        end = time.monotonic() + 10
        while request.number is None and time.monotonic() < end:  # the system may deliver it a moment later
            time.sleep(0.01)
        assert request.number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert "a checkpoint is written after this step" in capfd.readouterr().err


def test_signals_that_the_program_handles_itself_are_left_to_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        with catch_stop() as request:
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.number is None
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_another_thread_trains_without_signals() -> None:
    found: list[Any] = []

    def work() -> None:
        with catch_stop() as request:
            found.append(request)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].number is None
