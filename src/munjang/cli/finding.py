"""One thing that `munjang doctor` looked at, and whether something is to be done about it; and what it finds out about devices."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from munjang.engine.devices import DEVICES, choose_placements, explain_missing, list_installed

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


def devices(providers: Sequence[str] | None = None, system: str = "") -> Iterator[Finding]:
    """Yield a finding for every device that this system can have; `providers` are those of the installed onnxruntime unless given."""

    try:
        installed = list_installed(providers)
    except Exception:  # a broken onnxruntime has a finding of its own
        return
    used = choose_placements("auto", "float32", providers=providers)[0].device if installed else "cpu"
    for spec in DEVICES:
        if (system or platform.system()) not in spec.systems:
            continue
        computes = f"{spec.hardware}; {', '.join(sorted(spec.computes))}"
        if spec in installed:
            yield fine(f"device {spec.name}", computes + (", used by default" if spec.name == used else f"; --device {spec.name}"))
        else:
            what, _, advice = explain_missing(spec).partition("\n  ")
            yield tell(f"device {spec.name}", f"{spec.hardware}: {what}", advice)
