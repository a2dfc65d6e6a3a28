"""How long it takes to start, in processor time, which does not depend on who else uses the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="this system does not count the processor time of children")

ROUNDS = 25
"""Most starts that are tried: the least of them is what is promised, so that the first one in time is proof."""


def processor_seconds(code: str) -> float:
    """Return the processor time of a new Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def starts_within(seconds: float, code: str) -> bool:
    return any(processor_seconds(code) < seconds for _ in range(ROUNDS))


def test_importing_munjang_takes_at_most_50_milliseconds_more_than_python() -> None:
    python_alone = min(processor_seconds("pass") for _ in range(5))
    assert starts_within(python_alone + 0.05, "import munjang")


def test_help_takes_at_most_100_milliseconds() -> None:
    assert starts_within(0.1, "from munjang.cli.main import run; run(['--help'])")


def test_completing_a_command_takes_at_most_300_milliseconds() -> None:
    words = "os.environ.update(_MUNJANG_COMPLETE='complete_bash', COMP_WORDS='munjang sea', COMP_CWORD='1')"
    assert starts_within(0.3, f"import os; {words}; from munjang.cli.main import run; run([])")
