"""Every Python block and every `munjang` line of the READMEs is run as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from munjang.errors import MunjangError
from munjang.models.registry import resolve

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.ko.md")
LANGUAGE_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN_ELSEWHERE = ("./run", "pip ")
"""`./run` is what runs this test; `pip install .` is run by benchmarks/startup.py --install-size."""


def blocks(language: str) -> list[tuple[str, str]]:
    return [(name, code) for name in READMES for found, code in LANGUAGE_BLOCK.findall((ROOT / name).read_text()) if found == language]


def commands() -> list[tuple[str, str]]:
    lines = [(name, line.split("  #")[0].strip()) for name, code in blocks("sh") for line in code.splitlines()]
    return [(name, line) for name, line in lines if line and not line.startswith(RUN_ELSEWHERE)]


@pytest.fixture(autouse=True)
def _default_model() -> None:
    try:
        resolve()
    except MunjangError:
        pytest.skip("no default model is installed")


@pytest.mark.parametrize(("name", "code"), blocks("python"))
def test_a_python_block_runs(name: str, code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    shape = re.search(r"# (\(\d+, \d+\))", code)
    assert shape is None or shape.group(1) in done.stdout


@pytest.mark.parametrize(("name", "line"), commands())
def test_a_command_runs(name: str, line: str, tmp_path: Path) -> None:
    program, *arguments = shlex.split(line)
    assert program == "munjang", f"{name}: the test does not know how to run {line!r}"
    done = subprocess.run([Path(sys.executable).parent / program, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    assert done.stdout.strip()


def test_the_readmes_link_to_files_that_exist() -> None:
    for name in READMES:
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name} links to {target}"
