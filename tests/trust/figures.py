"""What a run of the tests found out, kept for docs/reliability.md: one small JSON file a promise and length, under build/trust.

A test hands over its counts before it judges them, so that a failure stands in the figures too. `report.py` makes the table of the docs.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

FOLDER = Path(__file__).parents[2] / "build" / "trust"


class Figures(Protocol):
    """Takes down how many cases of a promise were tried and how many were bad."""

    def __call__(self, promise: str, *, cases: int, bad: int, notes: str = "") -> None: ...


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keep the counts of one promise, under the name and length of the test that counted."""
    callspec = getattr(request.node, "callspec", None)
    length = "slow" if request.node.get_closest_marker("slow") else "short"
    variant = "" if callspec is None else "-".join(str(value) for name, value in callspec.params.items() if name != "length")
    test = f"{request.node.path.relative_to(FOLDER.parents[1]).as_posix()}::{request.node.originalname or request.node.name}"

    def keep(promise: str, *, cases: int, bad: int, notes: str = "") -> None:
        facts = {"promise": promise, "variant": variant, "length": length, "test": test, "cases": cases, "bad": bad, "notes": notes}
        facts |= {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
        FOLDER.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", f"{promise} {variant} {length}".lower()).strip("-")
        (FOLDER / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")

    return keep
