"""kill -9 at any moment, then resume: the same weights and the same log, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.forked import Forks

from munjang.errors import UsageError
from munjang.train import train
from munjang.train.durable import hash_file
from munjang.train.processes import has_bf16
from munjang.train.recipe import make_recipe

RUN = """
import json, os, signal, sys
from munjang.train import train
from munjang.train.recipe import make_recipe
from munjang.train.stage_run import Stepper
values, folder, resume, point, count = json.loads(sys.argv[1])
from pathlib import Path
seen = 0
def dying(real):
    def call(*arguments):
        global seen
        seen += 1
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return call
if point == "sync":
    os.fsync = dying(os.fsync)
elif point == "step":
    Stepper.run = dying(Stepper.run)
elif point == "tell":
    def telling(self, step, real=Stepper.run):
        print("step", flush=True)
        return real(self, step)
    Stepper.run = telling
train(make_recipe(values, folder=Path(folder)), resume=resume)
"""


def _values(recipe_values: dict[str, Any], output: str) -> dict[str, Any]:
    recipe_values = json.loads(json.dumps(recipe_values))
    recipe_values["output"] = output
    stage = recipe_values["stage"][0]
    dev = {"path": "pairs.tsv", "label_range": [0, 5]}
    second = stage | {
        "objective": "in_batch",
        "data": [{"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}],
        "epochs": 1,
        "mini_batch": 6,
    }
    recipe_values["stage"] = [stage | {"dev": dev, "evaluate_every": 5}, second]
    return recipe_values


def train_in_child(forks: Forks, values: dict[str, Any], folder: Path, resume: bool, point: str, count: int) -> int:
    """Train in a process that kills itself at the `count`-th step or sync; return its exit code."""
    return forks.run(RUN, json.dumps([values, str(folder), resume, point, count])).returncode


def test_killed_anywhere_and_resumed_it_ends_the_same(forks: Forks, pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    folder = pairs_file.parent
    # every run in a process of its own: what other tests did to torch's threads in this one would show in the last bit
    assert train_in_child(forks, _values(recipe_values, "whole"), folder, False, "step", 10_000) == 0
    values = _values(recipe_values, "broken")
    # in the middle of writing a checkpoint, then in a step of the second stage
    assert train_in_child(forks, values, folder, False, "sync", 17) == -signal.SIGKILL
    assert train_in_child(forks, values, folder, True, "step", 11) == -signal.SIGKILL
    assert train_in_child(forks, values, folder, True, "step", 10_000) == 0
    for name in ("model.safetensors", "training/log.jsonl", "tokenizer.json"):
        assert hash_file(folder / "whole" / name) == hash_file(folder / "broken" / name), name
    # a finished run can be resumed too: nothing is left to do, and nothing changes
    train(make_recipe(values, folder=folder), resume=True)
    assert hash_file(folder / "whole" / "model.safetensors") == hash_file(folder / "broken" / "model.safetensors")


@pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="this processor does not multiply in bf16")
def test_a_training_in_bf16_that_was_killed_ends_the_same(forks: Forks, pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    folder = pairs_file.parent
    assert train_in_child(forks, _values(recipe_values, "whole") | {"precision": "bf16"}, folder, False, "step", 10_000) == 0
    values = _values(recipe_values, "broken") | {"precision": "bf16"}
    assert train_in_child(forks, values, folder, False, "step", 7) == -signal.SIGKILL
    assert train_in_child(forks, values, folder, True, "step", 10_000) == 0
    for name in ("model.safetensors", "training/log.jsonl"):
        assert hash_file(folder / "whole" / name) == hash_file(folder / "broken" / name), name


def test_a_resume_with_other_data_is_refused(forks: Forks, pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    values = _values(recipe_values, "broken")
    assert train_in_child(forks, values, pairs_file.parent, False, "step", 7) == -signal.SIGKILL
    text = pairs_file.read_text(encoding="utf-8")
    pairs_file.write_text(text.replace("part 5.", "part five."), encoding="utf-8")
    with pytest.raises(UsageError, match="data files are not those"):
        train(make_recipe(values, folder=pairs_file.parent), resume=True)


@pytest.mark.slow
def test_ten_random_kills_in_two_hundred_steps(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    chance = random.Random(int(os.environ.get("MUNJANG_TEST_SEED", "0")))
    folder = pairs_file.parent
    values = _values(recipe_values, "whole")
    values["stage"][0]["steps"] = 200
    with _started(values, folder, False) as child:
        _wait_for_steps(child, 1, folder)
        at = time.monotonic()
        _wait_for_steps(child, 199, folder)
        pace = (time.monotonic() - at) / 199
        child.communicate()
    expected = {name: hash_file(folder / "whole" / name) for name in ("model.safetensors", "training/log.jsonl")}
    values["output"] = "broken"
    checkpoints = folder / "broken" / "training" / "checkpoints"
    writing = 0
    reached = []
    for number in range(10):
        with _started(values, folder, number > 0) as child:
            # counted in steps, so that it dies while it trains on any machine; then anywhere in a step or in writing a checkpoint
            _wait_for_steps(child, chance.randint(1, 18), folder)
            time.sleep(chance.uniform(0, 2 * pace))
            child.kill()
            assert child.wait() == -signal.SIGKILL
        writing += any(checkpoints.glob(".partial-*"))
        reached.append(max((path.name for path in checkpoints.glob("stage-*")), default="none"))
    print(f"{1000 * pace:.0f} ms a step; {writing} of 10 kills hit a checkpoint being written; newest checkpoint after each: {reached}")
    train(make_recipe(values, folder=folder), resume=True)
    for name, checksum in expected.items():
        assert hash_file(folder / "broken" / name) == checksum, name


def _started(values: dict[str, Any], folder: Path, resume: bool) -> subprocess.Popen[bytes]:
    argument = json.dumps([values, str(folder), resume, "tell", 0])
    with (folder / "errors.txt").open("wb") as errors:
        return subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN, argument], stdout=subprocess.PIPE, stderr=errors)


def _wait_for_steps(child: subprocess.Popen[bytes], count: int, folder: Path) -> None:
    assert child.stdout is not None
    for _ in range(count):
        assert child.stdout.readline() == b"step\n", (folder / "errors.txt").read_text()
