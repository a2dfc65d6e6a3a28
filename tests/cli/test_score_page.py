"""Every line of docs/score.md works as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

ROOT = Path(__file__).parents[2]


def test_every_line_and_block_works(
    munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="the page trains")
    pytest.importorskip("transformers", reason="the page trains")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/score.md"
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) == 6
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})
    assert "('contradiction', 'entailment', 'neutral')" in capsys.readouterr().out
