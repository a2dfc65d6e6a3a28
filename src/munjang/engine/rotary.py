"""Rotary positions: which frequencies a config.json asks for, and the nodes that rotate queries and keys by them.

Each half of a head is the other's imaginary part; place p turns pair i by p × frequency[i]. Only distances between places matter then.
Some kinds are for texts longer than a model was first trained on: each changes the frequencies, and some multiply cosines and
sines by a factor. "dynamic" stretches only beyond `max_position_embeddings`, where no text is read.

Shapes: T tokens, H half a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from munjang.engine.onnxgraph import FLOAT, MICROSOFT, GraphBuilder
from munjang.errors import FolderError, quote
from munjang.types import Floats

LARGEST_FACTOR = 1e4
LARGEST_LENGTH = 1e8


class RopeSettings:
    """The settings of rotary positions in one config.json, read with bounds."""

    def __init__(self, file: Path, config: dict[str, Any], settings: dict[str, Any], *, theta: float, size: int) -> None:
        self.file, self.config, self.settings, self.theta, self.size = file, config, settings, theta, size

    def number(self, key: str, default: float | None = None, *, smallest: float = 0.0, largest: float = LARGEST_FACTOR) -> float:
        """Return a setting that is a number in bounds."""
        value = self.settings.get(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not smallest < value <= largest:
            raise FolderError(f"{self.file}: rope {key} is {quote(str(value))}, expected a number above {smallest:g} and up to {largest:g}")
        return float(value)

    def factor(self) -> float:
        """Return how many times longer texts may be than those of the first training."""
        value = self.settings.get("factor", 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= LARGEST_FACTOR:
            raise FolderError(f"{self.file}: rope factor is {quote(str(value))}, expected a number from 1 to {LARGEST_FACTOR:g}")
        return float(value)

    def first_length(self) -> float:
        """Return the longest text of the first training."""
        own = self.config.get("original_max_position_embeddings") or self.config.get("max_position_embeddings")
        return self.number("original_max_position_embeddings", own, largest=LARGEST_LENGTH)


Stretch = Callable[[Floats, RopeSettings], tuple[Floats, float]]


def _keep(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:  # noqa: ARG001 (one signature for all kinds)
    return plain_H, 1.0


def _stretch_dynamic(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:
    settings.factor()
    return plain_H, 1.0


def _stretch_linear(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:
    return plain_H / np.float32(settings.factor()), 1.0


def _stretch_ntk(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:  # noqa: ARG001 (computed from the base itself)
    factor = settings.factor()
    wider_H = compute_frequencies(settings.theta * factor, settings.size)
    return wider_H / np.float32(factor ** (2 / settings.size)), 1.0


def _stretch_llama3(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:
    """Keep fast frequencies, slow the slow ones down, and go smoothly from the one to the other."""
    factor, length = settings.factor(), settings.first_length()
    low, high = settings.number("low_freq_factor"), settings.number("high_freq_factor")
    if low >= high:
        raise FolderError(f"{settings.file}: rope low_freq_factor {low:g} is not below high_freq_factor {high:g}")
    kept_H = np.clip((length * plain_H / (2 * math.pi) - low) / (high - low), 0, 1).astype(np.float32)
    return (1 - kept_H) * plain_H / np.float32(factor) + kept_H * plain_H, 1.0


def _stretch_yarn(plain_H: Floats, settings: RopeSettings) -> tuple[Floats, float]:
    """Keep the frequencies that turn often within the first length, slow down those that do not, and sharpen the attention."""
    factor, length, half = settings.factor(), settings.first_length(), len(plain_H)

    def find_pair(turns: float) -> float:
        return settings.size * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(settings.theta))

    first, last = find_pair(settings.number("beta_fast", 32)), find_pair(settings.number("beta_slow", 1))
    if settings.settings.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, settings.size - 1)
    last = last + 0.001 if first == last else last
    slowed_H = np.clip((np.arange(half, dtype=np.float32) - np.float32(first)) / np.float32(last - first), 0, 1)
    frequencies_H = plain_H / np.float32(factor) * slowed_H + plain_H * (1 - slowed_H)
    return frequencies_H, settings.number("attention_factor", _find_sharpness(settings, factor))


def _find_sharpness(settings: RopeSettings, factor: float) -> float:
    def sharpen(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1.0

    if settings.settings.get("mscale") and settings.settings.get("mscale_all_dim"):
        return sharpen(settings.number("mscale")) / sharpen(settings.number("mscale_all_dim"))
    return sharpen(1.0)


ROPE_KINDS: dict[str, Stretch] = {
    "default": _keep,
    "linear": _stretch_linear,
    "dynamic": _stretch_dynamic,
    "ntk": _stretch_ntk,
    "llama3": _stretch_llama3,
    "yarn": _stretch_yarn,
}
"""By the name that config.json gives as `rope_type`."""


def compute_frequencies(theta: float, size: int) -> Floats:
    """Return the plain frequencies of a head, in the float32 steps that models are trained in."""
    exponents = (np.arange(0, size, 2, dtype=np.float32) / np.float32(size)).astype(np.float64)
    frequencies_H: Floats = np.float32(1) / (theta**exponents).astype(np.float32)
    return frequencies_H


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

    def __init__(self, builder: GraphBuilder, positions: str) -> None:
        self.builder, self.positions = builder, positions
        self._angles: dict[Rotary, tuple[str, str]] = {}
        self._rows = ""

    def write(self, x: str, rotary: Rotary, *, heads: int, width: int) -> str:
        """Rotate the heads of `x` (T, width)."""
        builder = self.builder
        cosines, sines = self._write_angles(rotary)
        grid = builder.add("Unsqueeze", [x, builder.constant([0])])
        turned = builder.add("RotaryEmbedding", [grid, self._write_rows(), cosines, sines], domain=MICROSOFT, num_heads=heads)
        return builder.add("Reshape", [turned, builder.constant([-1, width])])

    def _write_angles(self, rotary: Rotary) -> tuple[str, str]:
        if rotary not in self._angles:
            builder = self.builder
            places = builder.add("Unsqueeze", [builder.add("Cast", [self.positions], to=FLOAT), builder.constant([1])])
            frequencies: Floats = np.asarray([rotary.frequencies_H], np.float32)
            angles = builder.add("Mul", [places, builder.constant(frequencies, np.float32)])
            self._angles[rotary] = builder.add("Cos", [angles]), builder.add("Sin", [angles])
        return self._angles[rotary]

    def _write_rows(self) -> str:
        if not self._rows:
            builder = self.builder
            count = builder.add("Squeeze", [builder.add("Shape", [self.positions]), builder.constant([0])])
            rows = builder.add("Range", [builder.constant(0), count, builder.constant(1)])
            self._rows = builder.add("Unsqueeze", [rows, builder.constant([0])])
        return self._rows
