"""How much each promise is tried: in every run of the tests, in `./run slow`, and with MUNJANG_TRUST=full in the environment.

short   in `./run test`; all together take about a minute of one core
slow    in `./run slow`
full    what the slow tests do with MUNJANG_TRUST=full; takes hours, one of them for memory
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import pytest

Length = Literal["short", "slow"]


@dataclass(frozen=True)
class Size:
    short: int
    slow: int
    full: int


SIZES = {
    "kills of a library": Size(30, 2_000, 2_000),
    "kills of a training": Size(3, 100, 100),
    "kills of a bulk job": Size(6, 200, 200),
    "kills of a model save": Size(8, 250, 250),
    "kills of a graph cache": Size(8, 250, 250),
    "kills at one call after the other": Size(0, 100, 2_000),
    "power cuts per writer": Size(60, 1_000, 5_000),
    "damages per kind": Size(150, 20_000, 20_000),
    "flips per part of a library": Size(10, 2_000, 20_000),
    "seconds of mixed work": Size(5, 120, 3_600),
}


def sized(name: str, length: Length) -> int:
    """Return how many cases a test of this length tries."""
    size = SIZES[name]
    if length == "short":
        return size.short
    return size.full if os.environ.get("MUNJANG_TRUST") == "full" else size.slow


LENGTHS = pytest.mark.parametrize("length", ["short", pytest.param("slow", marks=pytest.mark.slow)])
"""Runs a test twice: short always, slow when asked for."""
