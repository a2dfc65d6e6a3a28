"""Every block of docs/adapters.md works as it stands there, where its library is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from munjang.errors import MunjangError
from munjang.models.registry import resolve

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adapters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LLM_LINES = [line for line in PAGE.splitlines() if line.startswith("llm ")]
SLOW = ("llama_index", "haystack", "mteb", "bertopic", "keybert")
"""Libraries that take long to import."""


def first_library(block: str) -> str:
    found = re.match(r"(?:from|import) (\w+)", block)
    assert found is not None
    return found.group(1)


def cases() -> list[Any]:
    names = [(first_library(block), block) for block in BLOCKS]
    return [pytest.param(name, block, id=name, marks=pytest.mark.slow if name in SLOW else ()) for name, block in names]


@pytest.fixture(scope="module")
def home(make_reranker: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where the page's re-ranker lies."""
    try:
        resolve()
    except MunjangError:
        pytest.skip("no default model is installed")
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(make_reranker(1), folder / "models/my-reranker")
    return folder


def run(home: Path, *command: str) -> str:
    settings = {"MUNJANG_HOME": str(home), "LLM_USER_PATH": str(home / "llm"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=home, env=os.environ | settings, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "block"), cases())
def test_a_python_block_runs(name: str, block: str, home: Path) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    assert run(home, "-c", block).strip()


def test_every_adapter_has_its_block() -> None:
    files = {path.stem for path in (ROOT / "src/munjang/adapters").glob("*.py")} - {
        "__init__",
        "library_search",
        "loading",
        "missing",
        "llm",
    }
    assert {name for block in BLOCKS for name in re.findall(r"munjang\.adapters\.(\w+)", block)} == files


@pytest.mark.slow
def test_the_lines_of_llm_run(home: Path) -> None:
    if importlib.util.find_spec("llm") is None:
        pytest.skip("llm is not installed")
    if "munjang" not in run(home, "-m", "llm", "plugins"):
        pytest.skip("munjang was installed without its entry point; install it again: pip install -e .")
    (home / "rain.md").write_text("It has been raining since the morning", encoding="utf-8")
    assert len(LLM_LINES) == 4
    for line in LLM_LINES:
        assert run(home, "-m", *shlex.split(line)) or "embed-multi" in line, line
