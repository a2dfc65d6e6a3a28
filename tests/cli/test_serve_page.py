"""Every line of docs/serve.md works as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.models import registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/serve.md"


def test_every_line_works(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client"):
        pytest.importorskip(package, reason=f"the extra serve is not installed: {package}")
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    assert run_lines(PAGE, munjang) == 3


def test_every_route_of_the_page_exists() -> None:
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    from munjang.serve.app import all_operations

    known = {operation.path.split("{")[0].rstrip("/") for operation in all_operations()}
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"/(?:v1|v2|api)/[a-z]+|(?<=[ `])/[a-z_]+(?=[ `])", text):
        assert path in known, path
