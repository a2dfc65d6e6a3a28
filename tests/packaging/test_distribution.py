"""What is shipped: all that the package needs, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.packaging.conftest import ROOT, Built

from munjang import __version__

LARGEST_WHEEL = 100 * 10**6
"""What PyPI takes without asking."""

NO_INDEX = re.compile(r"No matching distribution|Could not find a version|Temporary failure|Connection|No route|timed out")


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/munjang").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert shipped == source
    assert {"munjang/py.typed", "munjang/models/samples.tsv", "munjang/serve/page/index.html", "munjang/report/map.js"} <= shipped
    assert built.wheel.stat().st_size < LARGEST_WHEEL


def test_the_wheel_says_what_it_is(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
        facts = Parser().parsestr(wheel.read(f"munjang-{__version__}.dist-info/METADATA").decode())
        scripts = wheel.read(f"munjang-{__version__}.dist-info/entry_points.txt").decode()
    assert facts["Version"] == __version__
    assert facts["License-Expression"] == "Apache-2.0"
    assert facts["Description-Content-Type"] == "text/markdown"
    assert "torch" not in {re.split(r"[^\w-]", line)[0] for line in facts.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert "munjang = munjang.cli.main:main" in scripts
    assert f"munjang-{__version__}.dist-info/licenses/LICENSE" in names


def test_the_source_distribution_can_be_tested_and_holds_no_leftovers(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.ko.md", "run", "tests/conftest.py", "examples/01_tokens.py", "docs/cli.md"} <= names
    assert not [name for name in names if name.startswith(("runs", "build")) or name.endswith(".pyc")]


def test_twine_finds_nothing_wrong(built: Built) -> None:
    if find_spec("twine") is None:
        pytest.skip("twine is not installed")
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", built.wheel, built.sdist], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def call(python: str | Path, *words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the shipped program; with `folder`, from there before anything that is installed."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)) if sys.argv[1] else sys.argv.pop(1); import munjang.cli.main as m; m.main()"
    return subprocess.run([python, "-c", code, folder or "", *words], capture_output=True, text=True, timeout=120, cwd=Path(python).parent)


@pytest.mark.slow
def test_the_wheel_works_beside_the_packages_that_are_here(built: Built, tmp_path: Path, tiny_bert_folder: Path) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tmp_path / "installed")
    folder = tmp_path / "installed"
    assert call(sys.executable, "--version", folder=folder).stdout == f"munjang {__version__}\n"
    assert str(folder) in call(sys.executable, "doctor", "--json", folder=folder).stdout
    for words in (("demo", "-k", "1"), ("models", "check", tiny_bert_folder)):
        model = ("--model", tiny_bert_folder) if words[0] == "demo" else ()
        done = call(sys.executable, *words, *model, folder=folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_installs_into_an_empty_environment(built: Built, tmp_path: Path) -> None:
    python = tmp_path / "empty/bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True, timeout=120)
    done = subprocess.run([python, "-m", "pip", "install", built.wheel], capture_output=True, text=True, timeout=600)
    if done.returncode and NO_INDEX.search(done.stderr + done.stdout):
        pytest.skip("pip finds no index with the packages that Munjang needs")
    assert done.returncode == 0, done.stderr
    assert call(python, "--version").stdout == f"munjang {__version__}\n"
    packages = next((tmp_path / "empty/lib").glob("python*/site-packages"))
    assert not {"torch", "transformers"} & {path.name for path in packages.iterdir()}
    if (packages / "munjang/models/bundled/hashes.json").is_file():
        assert call(python, "demo").returncode == 0
        assert call(python, "doctor").returncode == 0
