"""The same checks run everywhere: in `./run check`, before a commit and in CI."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUN = (ROOT / "run").read_text(encoding="utf-8")


def read_yaml(name: str) -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    if not (ROOT / name).is_file():
        pytest.skip(f"{name} is not part of this copy")
    return dict(yaml.safe_load((ROOT / name).read_text(encoding="utf-8")))


def test_the_hooks_before_a_commit_are_the_checks_of_run() -> None:
    repositories = read_yaml(".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"], "a hook would be downloaded"
    [checks] = re.findall(r"^check\(\) \{\n  (.+)\n\}", RUN, re.MULTILINE)
    commands = [words.replace('"$venv/bin/', ".venv/bin/").replace('"', "") for words in checks.split(" && ")]
    assert [hook["entry"] for hook in repositories[0]["hooks"]] == commands
    assert not any(hook["pass_filenames"] for hook in repositories[0]["hooks"])


def test_ci_runs_the_tests_on_every_supported_python() -> None:
    job = read_yaml(".github/workflows/ci.yml")["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["./run test"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in job["steps"] if "uses" in step), "an action is not pinned"


def test_nothing_that_a_run_leaves_behind_is_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this copy is not a git checkout")
    tracked = subprocess.run(["git", "ls-files", "--cached", "--ignored", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    assert tracked.stdout == ""
