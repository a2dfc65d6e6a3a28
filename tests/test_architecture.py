"""Which room imports which, as the contracts in pyproject.toml say it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
ROOMS = sorted(
    f"munjang.{path.stem}"
    for path in (ROOT / "src/munjang").iterdir()
    if path.suffix == ".py" or (path / "__init__.py").is_file()
    if path.stem != "__init__"
)


def test_the_rooms_import_only_what_they_may():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_stands_in_the_contracts(room):
    sources = {name for contract in CONTRACTS for name in contract.get("source_modules", [])}
    assert room in sources, f"add {room} to the contracts in pyproject.toml"


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_but_train_is_free_of_torch(room):
    bound = {name for contract in CONTRACTS if "torch" in contract.get("forbidden_modules", []) for name in contract["source_modules"]}
    assert (room in bound) == (room != "munjang.train")
