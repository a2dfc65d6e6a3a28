"""Does a call take time in proportion to its input? Sizes are doubled, and the last time is compared with that of an eighth of the size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from munjang.errors import MunjangError

NOISE = 0.001
"""Seconds that a call may take for its own; what takes less cannot be measured."""
ALLOWED = 3.2
"""Times n log n. Eight times the input may take 30 times as long (n² takes 64, n³ 512)."""
SHORT, LONG = 0.03, 2.0
"""Seconds up to which sizes are doubled."""


def cpu_seconds(call: Callable[[], object], *, times: int) -> float:
    """Return the least processor time of this process, all threads together, of some calls; a refusal is an answer too."""
    found = []
    gc.disable()  # how long a collection takes depends on what other tests have left in memory
    try:
        for _ in range(times):
            start = time.process_time()
            with suppress(MunjangError):
                call()
            found.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(found)


def check_growth(name: str, prepare: Callable[[int], Callable[[], object]], *, limit: int, seconds: float = SHORT, start: int = 64) -> None:
    """Fail where a call grows worse than n log n before its input's limit, or before it takes so many seconds.

    What grows too fast is looked at again for longer: work that is bounded, such as the lines that a quote may span, grows up to its bound.
    """
    cpu_seconds(prepare(start), times=1)  # what is loaded at the first call does not count
    for patience in (seconds, 16 * seconds):
        times = double_sizes(prepare, limit=limit, seconds=patience, start=start)
        if len(times) < 4:
            assert times[-1][1] < 5 * max(seconds, LONG), f"{name}: {times}"
            return
        (small, before), (large, after) = times[-4], times[-1]
        worst = ALLOWED * large / small * 1.18 * max(before, NOISE)
        if after <= worst or min(cpu_seconds(prepare(large), times=3) for _ in range(3)) <= worst:  # once, it may be the machine's fault
            return
    growth = after / max(before, NOISE)
    pytest.fail(f"{name}: {large / small:.0f} times the input took {growth:.0f} times as long, {after:.3f} s: {times}")


def double_sizes(prepare: Callable[[int], Callable[[], object]], *, limit: int, seconds: float, start: int) -> list[tuple[int, float]]:
    """Return sizes and times, up to the limit or so many seconds; twice as many for the four sizes that it takes to compare."""
    times: list[tuple[int, float]] = []
    size = start
    while True:
        call = prepare(size)
        took = cpu_seconds(call, times=1)
        times.append((size, min(took, cpu_seconds(call, times=2)) if took < seconds / 4 else took))
        if size >= limit or times[-1][1] > (seconds if len(times) >= 4 else 2 * seconds):
            return times
        size = min(2 * size, limit)
