"""Where the fixtures lie, and a reader that serves a whole module."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from munjang.documents.reader_process import DocumentReader

FIXTURES = Path(__file__).parent / "fixtures"
REPORTS = ("docx", "eml", "epub", "html", "hwp", "hwpx", "md", "odt", "pdf", "rtf")


def need_parsers() -> None:
    """Skip where the extra is not installed."""
    for package in ("xberg", "pypdfium2", "unhwp"):
        if find_spec(package) is None:
            pytest.skip(f"{package} (extra documents) is not installed")


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader]:
    need_parsers()
    with DocumentReader() as made:
        yield made
