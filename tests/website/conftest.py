"""The command line in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import munjang as munjang

from munjang.models import registry

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared/data"


@pytest.fixture
def tiny_default(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model in the place of the default one, so that pages run quickly and without a package."""
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
