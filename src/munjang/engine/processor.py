"""What the processor can do, from the flags that the system lists."""

from __future__ import annotations

import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Instruction sets that multiply in bfloat16: of Intel and AMD, of Intel alone, of ARM."""


def read_flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the processor's flags; none where the system does not list them."""
    try:
        line = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", cpuinfo.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return frozenset()
    return frozenset(line[1].split()) if line else frozenset()


def multiplies_bfloat16(flags: frozenset[str] | None = None) -> bool:
    """Say whether products in bfloat16 are faster than in float32 here; `flags` are the processor's own unless given."""
    return bool((read_flags() if flags is None else flags) & BFLOAT16_FLAGS)
