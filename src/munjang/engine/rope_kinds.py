"""Kinds of rotary positions for texts longer than a model was first trained on: how each stretches the frequencies.

Comes in: the plain frequencies of a head and the settings of config.json. Goes out: the frequencies that the kind makes of them, and the
factor by which it multiplies cosines and sines. "dynamic" stretches only beyond `max_position_embeddings`, where no text is read.

Shapes: H half a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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
