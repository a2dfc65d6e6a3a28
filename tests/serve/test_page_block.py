"""The Python block of docs/serve.md, with this server's address, talks to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import Running
from website.blocks import blocks

PAGE = Path(__file__).parents[2] / "docs/serve.md"


def test_the_block_of_the_page_works(server: Running) -> None:
    pytest.importorskip("openai", reason="the client openai is not installed")
    [code] = [block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.language == "python"]
    scope: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:8080", server.url), scope)
    assert len(scope["answer"].data) == 2
    scope["client"].close()
