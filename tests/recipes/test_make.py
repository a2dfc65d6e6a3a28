"""The recipe of the bundled model in one command: every step once, none twice, trainings from where they stopped."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes/ko-en-small"

STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> log
out=$(printf '%s\\n' "$@" | sed -n '/^-o$/{n;p;}' | tail -n 1)
[ "$1" = train ] && out=$(sed -n 's/^output = "..\\/..\\/\\(.*\\)"/\\1/p' "$2")
made="model.safetensors texts-more.tsv silver.tsv silver-ko.tsv vectors.parquet"
case $out in
  "") ;;
  *.txt | *.csv) : > "$out" ;;
  *) mkdir -p "$out"; for name in $made; do : > "$out/$name"; done ;;
esac
exit 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the recipes, and commands that only say that they were called."""
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    (tmp_path / "bin").mkdir()
    (tmp_path / "runs").mkdir()
    for name in ("python", "munjang", "npm", "tar"):
        (tmp_path / "bin" / name).write_text(STUB, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def make(project: Path, *arguments: str) -> str:
    script = project / "recipes/ko-en-small/make"
    path = f"{project / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(["/bin/sh", str(script), *arguments], env={"PATH": path}, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def calls(project: Path) -> list[str]:
    log = project / "log"
    found = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [call for call in found if not call.startswith(("npm", "tar"))]


def test_every_step_names_files_that_exist(project: Path) -> None:
    steps = make(project, "--list").splitlines()
    assert [int(step.split(".")[0]) for step in steps] == list(range(1, len(steps) + 1))
    for named in re.findall(r"recipes/\S+\.(?:py|toml)", "\n".join(steps)):
        assert (ROOT / named).is_file(), named
    assert calls(project) == []


def test_every_recipe_writes_where_the_next_step_looks(project: Path) -> None:
    for name, output in re.findall(r"munjang train (\S+)()", make(project, "--list")):
        output = re.search(r'^output = "\.\./\.\./(.*)"', (ROOT / name).read_text(encoding="utf-8"), re.M)[1]  # type: ignore[index]
        assert f" {output}" in (RECIPE / "make").read_text(encoding="utf-8").replace("$runs", "runs/ko-en-small"), name


def test_a_second_run_makes_nothing_again(project: Path) -> None:
    make(project)
    first = calls(project)
    assert len(first) == len(set(first)) >= 24
    assert "is there" in make(project)
    (project / "runs/ko-en-small/bundled").unlink()
    make(project)
    assert [call.split()[1] for call in calls(project)] == [
        "recipes/bundle.py",
        "recipes/ko-en-small/expected_similarity.py",
        "recipes/bundle.py",
    ]


def test_a_training_that_was_stopped_goes_on(project: Path) -> None:
    make(project)
    calls(project)
    output = project / "runs/ko-en-small/third"
    (output / "model.safetensors").unlink()
    (output / "training/checkpoints").mkdir(parents=True)
    make(project)
    assert calls(project) == ["munjang train recipes/ko-en-small/third.toml --resume"]
