"""Two processes with half the batch each take the steps of one process with the whole; started by hand, and by accelerate."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forked import Forks

from munjang.train import train
from munjang.train.recipe import make_recipe, read_recipe

RUN = """
import json, sys
from pathlib import Path
from munjang.train import train
from munjang.train.recipe import make_recipe
for values, folder in json.loads(sys.argv[1]):
    train(make_recipe(values, folder=Path(folder)))
"""


RECIPE = """
output = "one"

[model]
dropout = 0.0
scratch = { vocabulary = 200, layers = 2, width = 32, heads = 2, inner = 64, positions = 64 }

[[stage]]
objective = "in_batch"
steps = 5
batch_size = 14
learning_rate = 1e-3

[[stage.data]]
path = "pairs.tsv"
texts = ["sentence1", "sentence2"]
"""


def _losses(folder: Path) -> list[float]:
    lines = (folder / "training" / "log.jsonl").read_text().splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if "loss" in entry]


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run_two(forks: Forks, code: str, *arguments: str, folder: Path | None = None) -> list[subprocess.CompletedProcess[str]]:
    """Run code in two processes that find each other by what a launcher tells them."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port()), "ACCELERATE_USE_CPU": "true"}
    ranks = [shared | {"RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
    children = [forks.start(code, *arguments, folder=folder, environment=told) for told in ranks]
    done = [forks.wait(child) for child in children]
    assert [each.returncode for each in done] == [0, 0], [each.stderr for each in done]
    return done


def launch(forks: Forks, runs: list[tuple[dict[str, Any], str]]) -> None:
    run_two(forks, RUN, json.dumps(runs))


@pytest.mark.skipif(sys.platform == "win32", reason="gloo is tested on POSIX")
def test_the_loss_curve_is_that_of_one_process_with_the_whole_batch(forks: Forks, pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    folder = pairs_file.parent
    recipe_values["model"]["dropout"] = 0.0
    pairs = [{"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}]
    stages = {
        # a batch of 14 leaves uneven shares at the end of an epoch
        "regression": {"batch_size": 14, "dev": {"path": "pairs.tsv", "label_range": [0, 5]}},
        "in_batch": {"batch_size": 14, "data": pairs},
        "cached": {"objective": "in_batch", "batch_size": 14, "data": pairs, "mini_batch": 4},
    }
    runs: dict[int, list[tuple[dict[str, Any], str]]] = {1: [], 2: []}
    for count, listed in runs.items():
        for name, stage in stages.items():
            values = json.loads(json.dumps(recipe_values)) | {"output": f"{name}-{count}"}
            values["stage"][0] |= {"objective": name, "steps": 9} | stage
            listed.append((values, str(folder)))
    for values, _ in runs[1]:
        train(make_recipe(values, folder=folder))
    launch(forks, runs[2])
    for name in stages:
        curves = [_losses(folder / f"{name}-{count}") for count in (1, 2)]
        assert len(curves[0]) == 9
        assert np.allclose(curves[0], curves[1], atol=1e-5), name


COMMAND = "import sys; from munjang.cli.main import run; sys.exit(run(sys.argv[1:]))"


@pytest.mark.skipif(sys.platform == "win32", reason="gloo is tested on POSIX")
def test_of_two_processes_with_one_command_one_tells_and_the_other_is_silent(forks: Forks, pairs_file: Path) -> None:
    folder = pairs_file.parent
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    train(read_recipe(folder / "recipe.toml"))
    first, second = run_two(forks, COMMAND, "train", "recipe.toml", "-o", "two", "--json", folder=folder)
    assert json.loads(first.stdout)["steps"] == 5
    assert first.stderr.count("2 processes train together") == 1
    assert (second.stdout, second.stderr) == ("", "")
    assert np.allclose(_losses(folder / "one"), _losses(folder / "two"), atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="gloo is tested on POSIX")
def test_accelerate_launches_the_command_in_two_processes(pairs_file: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    folder = pairs_file.parent
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    train(read_recipe(folder / "recipe.toml"))
    run = start_accelerate(folder, "--main_process_port", str(_port()))
    told, messages = run.communicate(timeout=120)
    assert run.returncode == 0, messages
    # one process tells, the other is silent
    assert json.loads(told)["steps"] == 5
    assert messages.count("2 processes train together") == 1
    assert np.allclose(_losses(folder / "one"), _losses(folder / "two"), atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="gloo is tested on POSIX")
def test_two_machines_that_accelerate_launches_train_as_one_process_with_the_whole_batch(pairs_file: Path, tmp_path: Path) -> None:
    """Each machine has the recipe and the data in a folder of its own; they meet on the loopback."""
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    (pairs_file.parent / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    first, second = (Path(shutil.copytree(pairs_file.parent, tmp_path / name)) for name in ("first", "second"))
    train(read_recipe(first / "recipe.toml"))
    where = ["--num_machines", "2", "--main_process_ip", "127.0.0.1", "--main_process_port", str(_port())]
    runs = [start_accelerate(folder, *where, "--machine_rank", str(rank)) for rank, folder in enumerate((first, second))]
    told = [run.communicate(timeout=240) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], told
    assert json.loads(told[0][0])["steps"] == 5
    assert told[0][1].count("2 processes train together") == 1
    assert told[1][0] == ""
    assert np.allclose(_losses(first / "one"), _losses(first / "two"), atol=1e-5)
    assert not (second / "two").exists()


def start_accelerate(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start two processes, or this machine's part of them; for several on CPUs `accelerate launch` has no name but that of GPUs."""
    launch = [sys.executable, "-W", "ignore", "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", *options]
    given = ["-m", "munjang.cli.main", "train", "recipe.toml", "-o", "two", "--json"]
    # a home of its own: a default configuration of the user's would change what is launched
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "home"), "PYTHONWARNINGS": "ignore"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*launch, *given], cwd=folder, env=environment, **pipes)
