"""How long it takes to start, in processor time, which does not depend on who else uses the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="this system does not count the processor time of children")

ROUNDS = 25


def processor_seconds(code: str) -> float:
    """Return the least processor time of several new Pythons."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return float(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return min(once() for _ in range(ROUNDS))


def test_importing_munjang_takes_at_most_50_milliseconds_more_than_python() -> None:
    assert processor_seconds("import munjang") - processor_seconds("pass") < 0.05


def test_help_takes_at_most_100_milliseconds() -> None:
    assert processor_seconds("from munjang.cli.main import run; run(['--help'])") < 0.1


def test_completing_a_command_takes_at_most_300_milliseconds() -> None:
    words = "os.environ.update(_MUNJANG_COMPLETE='complete_bash', COMP_WORDS='munjang sea', COMP_CWORD='1')"
    assert processor_seconds(f"import os; {words}; from munjang.cli.main import run; run([])") < 0.3
