"""The processor that a benchmark ran on: its name, its cores, and the instruction sets that decide how fast it multiplies.

`./run bench NAME` prints it before every benchmark, and benchmarks put it into their JSON.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from munjang.engine.devices import read_flags

CPUINFO = Path("/proc/cpuinfo")
TELLING = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp", "i8mm", "bf16")
"""Flags that decide which arithmetic is fast."""


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def describe_machine() -> dict[str, object]:
    """Return the facts that a result depends on."""
    flags = read_flags()
    return {
        "processor": processor(),
        "flags": [flag for flag in TELLING if flag in flags],
        "missing": [flag for flag in ("avx512_vnni", "avx512_bf16", "amx_bf16") if flag not in flags],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    machine = describe_machine()
    print(f"{machine['processor']}, {machine['cores']} cores: {' '.join(machine['flags'])}", file=sys.stderr)  # type: ignore[arg-type]
