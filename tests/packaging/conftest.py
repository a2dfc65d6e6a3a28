"""The wheel and the source distribution, built once from a clean copy of the files that belong to the project, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("src", "docs", "examples", "tests", "recipes", "requirements", "benchmarks", "website")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, f'build_{sys.argv[1]}')(sys.argv[2])"


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if not (ROOT / "MANIFEST.in").is_file():
        pytest.skip("MANIFEST.in is not part of this copy")
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    for name in filter(lambda name: (ROOT / name).is_dir(), COPIED):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for file in (*ROOT.glob("*.md"), *(ROOT / name for name in ("pyproject.toml", "MANIFEST.in", "LICENSE", "run"))):
        shutil.copy(file, folder)
    for leftover in ("runs/x/model.py", "build/lib/munjang/old.py", "tests/__pycache__/old.pyc"):
        (folder / leftover).parent.mkdir(parents=True, exist_ok=True)
        (folder / leftover).write_text("left over from a run")
    sdist = _build("sdist", folder, tmp_path_factory.mktemp("sdist"))
    with tarfile.open(sdist) as archive:
        unpacked = tmp_path_factory.mktemp("unpacked")
        archive.extractall(unpacked, filter="data")
    [inner] = unpacked.iterdir()
    return Built(_build("wheel", inner, tmp_path_factory.mktemp("wheel")), sdist)


def _build(kind: str, folder: Path, target: Path) -> Path:
    """Build as `python -m build` does: the wheel from what the source distribution holds."""
    done = subprocess.run([sys.executable, "-c", BUILD, kind, target], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    [made] = target.iterdir()
    return made
