"""float32 vectors → fewer bytes: float16, int8, uint8, or one bit per dimension; and back where that is possible.

int8 and uint8 cut each dimension's range into 256 steps. With `ranges` or `calibration` the numbers equal those of sentence-transformers.
Without either, Munjang uses fixed ranges for unit vectors (`make_unit_ranges`): sentence-transformers takes the minimum and maximum of the
batch at hand, so the same text gets different bytes in different calls and cannot be compared across them; with fixed ranges it can.
Searching compressed vectors is left to `compressed`.

Shapes: N vectors, D dimensions, B = ⌈D/8⌉ bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.errors import InputError, UsageError, quote
from munjang.types import Precision, Vectors
from munjang.vectors.similarity import to_rows

_STEPS = 255
_UNIT_DEVIATIONS = 4.0  # a unit vector's coordinates spread by about 1/√d; 4 of those clip less than one in ten thousand if they are normal


@dataclass(frozen=True, eq=False)
class Ranges:
    """The smallest and largest value that each dimension's steps cover; values outside are clipped."""

    low_D: Vectors
    high_D: Vectors

    def __post_init__(self) -> None:
        """Refuse ranges that are not two float32 vectors of one length, low never above high."""
        low_D, high_D = np.array(self.low_D, dtype=np.float32), np.array(self.high_D, dtype=np.float32)
        if low_D.ndim != 1 or low_D.shape != high_D.shape:
            raise UsageError(f"ranges: low has shape {low_D.shape}, high has shape {high_D.shape}; expected (d,) for both")
        if not (np.isfinite(low_D) & np.isfinite(high_D) & (low_D <= high_D)).all():
            raise InputError("ranges: expected finite numbers with low ≤ high in every dimension\n  take them with ranges_of(vectors)")
        low_D.flags.writeable = high_D.flags.writeable = False
        object.__setattr__(self, "low_D", low_D)
        object.__setattr__(self, "high_D", high_D)

    @property
    def dimension(self) -> int:
        """How many dimensions the ranges are for."""
        return len(self.low_D)

    @property
    def step_D(self) -> Vectors:
        """The width of one step in each dimension; 0 where a dimension never varies."""
        return np.asarray((self.high_D - self.low_D) / np.float32(_STEPS), dtype=np.float32)


def find_ranges(vectors: ArrayLike) -> Ranges:
    """Return the range that each dimension takes in these vectors."""
    rows_ND = to_rows(vectors, "vectors")
    if len(rows_ND) < 2:
        raise UsageError(f"ranges_of: found {len(rows_ND)} vectors; expected at least 2, better 100 or more\n  unit_ranges(d) needs none")
    return Ranges(rows_ND.min(axis=0), rows_ND.max(axis=0))


def make_unit_ranges(dimension: int) -> Ranges:
    """Return the fixed ranges for unit vectors: ±4/√d in every dimension, never beyond ±1; 0 maps to a step whose middle is exactly 0.

    >>> make_unit_ranges(64).high_D[0].item()
    0.5
    """
    edge = min(1.0, _UNIT_DEVIATIONS / max(1, dimension) ** 0.5)
    high_D = np.full(dimension, edge, dtype=np.float32)
    return Ranges(-high_D, high_D)


def quantize(
    vectors: ArrayLike, precision: Precision, *, ranges: Ranges | None = None, calibration: ArrayLike | None = None
) -> NDArray[Any]:
    """Return the vectors in another precision, rows staying rows and a single vector staying single.

    `ranges` and `calibration` (vectors to take ranges from) matter to int8 and uint8 only; without them `make_unit_ranges` are used.
    binary and ubinary keep the sign of each dimension, 8 to a byte.

    >>> quantize([0.5, -0.5, 0.5, 0.5], "ubinary").tolist()
    [176]
    """
    if precision not in get_args(Precision):
        raise UsageError(f"precision {quote(str(precision))} is unknown\n  choose one of {', '.join(get_args(Precision))}")
    if ranges is not None and calibration is not None:
        raise UsageError("quantize: found both ranges and calibration; expected one of them\n  drop calibration to use the ranges")
    found = np.asarray(vectors)
    rows_ND = to_rows(found, "vectors")
    if precision in ("int8", "uint8"):
        if calibration is not None:
            ranges = find_ranges(calibration)
        compact = _compute_steps(rows_ND, precision, choose_ranges(ranges, rows_ND.shape[1]))
    elif precision in ("binary", "ubinary"):
        compact = np.packbits(rows_ND > 0, axis=-1)
        compact = (compact ^ np.uint8(128)).view(np.int8) if precision == "binary" else compact
    else:
        compact = _to_float(rows_ND, precision)
    return compact if found.ndim == 2 else compact[0]


def dequantize(compact: NDArray[Any], *, ranges: Ranges | None = None) -> Vectors:
    """Return float32 vectors from float32, float16, int8 or uint8, each number in the middle of its step.

    Pass the `ranges` that `quantize` was given; within them no number is off by more than half a step, plus rounding. Bytes that hold
    one bit per dimension cannot be told from int8 and uint8 by their looks: search those with `top_k_binary`.
    """
    compact = np.asarray(compact)
    if compact.dtype in (np.float32, np.float16):
        return compact.astype(np.float32)
    if compact.dtype not in (np.int8, np.uint8):
        raise UsageError(f"dequantize: found {compact.dtype}; expected float32, float16, int8 or uint8")
    ranges = choose_ranges(ranges, compact.shape[-1])
    middle = 128.5 if compact.dtype == np.int8 else 0.5
    return np.asarray((compact.astype(np.float32) + np.float32(middle)) * ranges.step_D + ranges.low_D, dtype=np.float32)


def choose_ranges(ranges: Ranges | None, dimension: int) -> Ranges:
    """Return the ranges given, or those for unit vectors; refuse ranges of another dimension."""
    if ranges is None:
        return make_unit_ranges(dimension)
    if ranges.dimension != dimension:
        raise UsageError(f"ranges are for {ranges.dimension} dimensions, the vectors have {dimension}\n  take them with ranges_of(vectors)")
    return ranges


def _compute_steps(rows_ND: Vectors, precision: Precision, ranges: Ranges) -> NDArray[Any]:
    step_D = np.where(ranges.step_D == 0, np.float32(1), ranges.step_D)
    steps_ND = np.clip(np.floor((rows_ND - ranges.low_D) / step_D), 0, _STEPS)
    return steps_ND.astype(np.uint8) if precision == "uint8" else (steps_ND - 128).astype(np.int8)


def _to_float(rows_ND: Vectors, precision: Precision) -> NDArray[Any]:
    if precision == "float32":
        return rows_ND.copy()
    edge = np.finfo(np.float16).max
    if rows_ND.size and max(rows_ND.max(), -rows_ND.min()) > edge:
        raise InputError(f"vectors hold numbers beyond ±{edge:,.0f}, which float16 cannot\n  normalize them first, or keep float32")
    return rows_ND.astype(np.float16)
