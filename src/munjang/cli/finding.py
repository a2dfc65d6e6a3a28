"""One thing that `munjang doctor` looked at, and whether something is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. A note is for information; with a problem, something will not work."""

    name: str
    state: State
    found: str
    advice: str | None = None
    """What to do; None where nothing is to be done."""


def fine(name: str, found: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(name, "ok", found)


def tell(name: str, found: str, advice: str) -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(name, "note", found, advice)


def wrong(name: str, found: str, advice: str) -> Finding:
    """Return a finding that stops something from working."""
    return Finding(name, "problem", found, advice)
