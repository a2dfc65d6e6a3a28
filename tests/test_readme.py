"""Every Python block and every `munjang` line of the READMEs is run as it stands there, and prints what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import munjang as munjang
from tests.website.running import run_page, without_numbers, write_files
from website.blocks import blocks, shown, shown_files
from website.outputs import WIDTH

from munjang.errors import MunjangError
from munjang.models.registry import resolve

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.ko.md")
RUN_ELSEWHERE = {"./run", "pip"}
"""`./run` is what runs this test; `pip install .` is run by benchmarks/startup.py --install-size."""
REWRITE = "python -m website.outputs README.md writes the outputs anew"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def needs_default_model() -> None:
    try:
        resolve()
    except MunjangError:
        pytest.skip("no default model is installed")


PYTHON = [(name, block.text) for name in READMES for block in blocks(read(name)) if block.language == "python"]


@pytest.mark.parametrize(("name", "code"), PYTHON, ids=[f"{name}-{number}" for number, (name, _) in enumerate(PYTHON)])
def test_a_python_block_runs(name: str, code: str, tmp_path: Path) -> None:
    needs_default_model()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    shape = re.search(r"# (\(\d+, \d+\))", code)
    assert shape is None or shape.group(1) in done.stdout


@pytest.mark.parametrize("name", READMES)
def test_every_line_works_and_prints_what_is_shown(
    name: str, munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_default_model()
    for package in ("kiwipiepy", "starlette", "uvicorn", "pydantic", "orjson"):
        pytest.importorskip(package, reason=f"{package}, which the README's lines use, is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    write_files(read(name), tmp_path)
    printed = run_page(read(name), munjang)
    assert sum(part.output is not None for part, _ in printed) >= 4
    for part, text in printed:
        assert not part.output or without_numbers(part.output.text) == without_numbers(text), REWRITE


@pytest.mark.parametrize("name", READMES)
def test_only_known_programs_are_called(name: str) -> None:
    assert {line.words[0] for part in shown(read(name)) for line in part.lines} <= {"munjang", *RUN_ELSEWHERE}


def test_both_readmes_show_the_same_commands_and_files() -> None:
    english, korean = (read(name) for name in READMES)
    assert [line.words for part in shown(korean) for line in part.lines] == [line.words for part in shown(english) for line in part.lines]
    assert shown_files(korean) == shown_files(english)


@pytest.mark.parametrize("name", READMES)
def test_every_number_of_the_comparison_stands_in_the_results(name: str) -> None:
    results = read("docs/results.md")
    rows = [line for line in read(name).splitlines() if line.startswith("|") and ("`./run bench" in line or "`python benchmarks/" in line)]
    assert len(rows) >= 8
    for row in rows:
        figures = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-\d+)?(?!\.?\d|[A-Za-z-])", row)
        assert all(re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", results) for figure in figures), row
        command = row.rstrip("| ").rpartition("`")[0].rpartition("`")[2]
        script = f"benchmarks/{command.split()[2]}.py" if command.startswith("./run bench") else command.split()[1]
        assert (ROOT / script).is_file(), row
