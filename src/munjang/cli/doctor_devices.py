"""What `munjang doctor` says about devices: which there are, which one is used, and what the others would need."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence

from munjang.cli.finding import Finding, fine, tell


def devices(providers: Sequence[str] | None = None, system: str = "") -> Iterator[Finding]:
    """Yield a finding for every device that this system can have; `providers` are those of the installed onnxruntime unless given."""
    from munjang.engine.devices import DEVICES, choose_placements, explain_missing, list_installed

    try:
        installed = list_installed(providers)
    except Exception:  # a broken onnxruntime has a finding of its own
        return
    used = choose_placements("auto", "auto", providers=providers)[0].device if installed else "cpu"
    for spec in DEVICES:
        if (system or platform.system()) not in spec.systems:
            continue
        computes = f"{spec.hardware}; {', '.join(sorted(spec.computes))}"
        if spec in installed:
            yield fine(f"device {spec.name}", computes + (", used by default" if spec.name == used else f"; --device {spec.name}"))
        else:
            what, _, advice = explain_missing(spec).partition("\n  ")
            yield tell(f"device {spec.name}", f"{spec.hardware}: {what}", advice)
