"""Rotary positions: which frequencies a config.json asks for, and the nodes that rotate queries and keys by them.

Each half of a head is the other's imaginary part; place p turns pair i by p × frequency[i]. Only distances between places matter then.

Shapes: T tokens, H half a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from munjang.engine.onnxgraph import FLOAT, MICROSOFT, GraphBuilder
from munjang.engine.rope_kinds import ROPE_KINDS, RopeSettings, compute_frequencies
from munjang.errors import FolderError, quote
from munjang.types import Floats

LARGEST_THETA = 1e12


@dataclass(frozen=True)
class Rotary:
    """The angle per place of each pair of a head's numbers."""

    frequencies_H: tuple[float, ...]
    factor: float = 1.0
    """What cosines and sines are multiplied by. Queries and keys have it both, so attention scores have its square."""


def read_rotary(file: Path, config: dict[str, Any], *, size: int, theta: float, kind: str = "", theta_keys: tuple[str, ...] = ()) -> Rotary:
    """Return the frequencies for heads of `size`; `kind` is the type of layer, `theta` the family's base, `theta_keys` its older keys."""
    if size < 2 or size % 2:
        raise FolderError(f"{file}: rotary positions need heads of an even size, found {size}")
    settings = _read_settings(file, config, kind)
    base = settings.get("rope_theta")
    for key in theta_keys:
        base = config.get(key) if base is None else base
    base = _check_number(file, "rope_theta", theta if base is None else base, LARGEST_THETA)
    fraction = settings.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    if fraction != 1:
        raise FolderError(f"{file}: partial_rotary_factor is {quote(str(fraction))}; heads that are rotated in part do not run here")
    name = str(settings.get("rope_type", settings.get("type", "default")))
    if name not in ROPE_KINDS:
        raise FolderError(f"{file}: rope_type {quote(name)} does not run on the fast engine; it runs {', '.join(ROPE_KINDS)}")
    stretched_H, factor = ROPE_KINDS[name](compute_frequencies(base, size), RopeSettings(file, config, settings, theta=base, size=size))
    return Rotary(tuple(stretched_H.astype(np.float32).tolist()), factor)


def _read_settings(file: Path, config: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the table of rotary settings, whichever of its places it stands in."""
    settings = config.get("rope_parameters")
    if settings is None:
        settings = config.get("rope_scaling") or {}
    if kind and isinstance(settings, dict) and any(isinstance(value, dict) or value is None for value in settings.values()):
        settings = settings.get(kind) or {}
    if not isinstance(settings, dict):
        raise FolderError(f"{file}: the settings of rotary positions are {quote(str(settings))}, expected a table")
    return settings


def _check_number(file: Path, key: str, value: object, largest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= largest:
        raise FolderError(f"{file}: {key} is {quote(str(value))}, expected a number from 1 to {largest:g}")
    return float(value)


class RotaryWriter:
    """Writes rotations into a graph; angles of equal frequencies are written once."""

    def __init__(self, pen: GraphBuilder, positions: str) -> None:
        self.pen, self.positions = pen, positions
        self._angles: dict[Rotary, tuple[str, str]] = {}
        self._rows = ""

    def write(self, x: str, rotary: Rotary, *, heads: int, width: int) -> str:
        """Rotate the heads of `x` (T, width)."""
        pen = self.pen
        cosines, sines = self._write_angles(rotary)
        grid = pen.add("Unsqueeze", [x, pen.constant([0])])
        turned = pen.add("RotaryEmbedding", [grid, self._write_rows(), cosines, sines], domain=MICROSOFT, num_heads=heads)
        return pen.add("Reshape", [turned, pen.constant([-1, width])])

    def _write_angles(self, rotary: Rotary) -> tuple[str, str]:
        if rotary not in self._angles:
            pen = self.pen
            places = pen.add("Unsqueeze", [pen.add("Cast", [self.positions], to=FLOAT), pen.constant([1])])
            frequencies: Floats = np.asarray([rotary.frequencies_H], np.float32)
            angles = pen.add("Mul", [places, pen.constant(frequencies, np.float32)])
            self._angles[rotary] = pen.add("Cos", [angles]), pen.add("Sin", [angles])
        return self._angles[rotary]

    def _write_rows(self) -> str:
        if not self._rows:
            pen = self.pen
            count = pen.add("Squeeze", [pen.add("Shape", [self.positions]), pen.constant([0])])
            rows = pen.add("Range", [pen.constant(0), count, pen.constant(1)])
            self._rows = pen.add("Unsqueeze", [rows, pen.constant([0])])
        return self._rows
