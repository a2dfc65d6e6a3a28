"""`munjang tune`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_library import _tiny_default  # noqa: F401

Munjang = Callable[..., Any]


def test_weights_are_chosen_by_questions_and_by_titles(munjang: Munjang, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{n},number{n},the rain in winter number{n}" for n in range(40)]
    (tmp_path / "news.csv").write_text("id,title,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "questions.csv").write_text("id,text\n" + "\n".join(f"{n},number{n}" for n in range(40)) + "\n", encoding="utf-8")
    assert munjang("add", "news.db", "news.csv").code == 0
    report = munjang("tune", "news.db", "questions.csv", "--json").json
    assert (report["source"], report["questions"]) == ("labels", 40)
    shown = munjang("tune", "news.db", "--dry-run")
    assert "from titles" in shown.out
    (tmp_path / "few.csv").write_text("id,text\n1,number1\n", encoding="utf-8")
    assert munjang("tune", "news.db", "few.csv").code == 2
