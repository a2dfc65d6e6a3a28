"""What each layer's attention looks like: heads, how far a token sees, and by which angles positions turn it.

Comes in: a family's settings. Goes out: one `AttentionShape` per layer. A token sees the `before` tokens before it and the `after` tokens
after it; None is no limit. A causal layer is one with `after` 0, a local layer one with two limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from munjang.engine.rotary import Rotary, read_rotary
from munjang.engine.tensor_reader import TensorReader
from munjang.errors import FolderError, quote

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class AttentionShape:
    """One layer's attention, without its weights."""

    heads: int
    size: int
    """Numbers in a head."""
    key_heads: int
    """Fewer than `heads` where several queries share a key."""
    scale: float
    """What query times key is multiplied by."""
    before: int | None = None
    after: int | None = None
    rotary: Rotary | None = None

    @property
    def width(self) -> int:
        """Width of a query."""
        return self.heads * self.size

    @property
    def key_width(self) -> int:
        """Width of a key and of a value."""
        return self.key_heads * self.size

    @property
    def sees_all(self) -> bool:
        """Whether every token sees every other."""
        return self.before is None and self.after is None


def read_attention_shapes(reader: TensorReader, *, heads: int, layers: int, width: int) -> list[AttentionShape]:
    """Return the shape of every layer's attention."""
    file = reader.config_file
    if not layers:
        raise FolderError(f"{file}: the encoder has no layers")
    if heads < 1 or width % heads:
        raise FolderError(f"{file}: {heads} heads do not divide a width of {width}")
    size = width // heads
    plain = AttentionShape(heads=heads, size=size, key_heads=heads, scale=size**-0.5)
    if reader.family == "modernbert":
        return _read_modernbert(reader, plain, layers)
    return [plain] * layers


def _read_modernbert(reader: TensorReader, plain: AttentionShape, layers: int) -> list[AttentionShape]:
    """Every third layer sees all; the others see half of `local_attention` tokens to each side."""
    half = reader.size("local_attention", default=128) // 2
    kinds = _read_layer_types(reader, layers, every=reader.size("global_attn_every_n_layers", default=3))
    rotaries = {
        FULL: _rotary(reader, plain, FULL, theta=160_000.0, theta_keys=("global_rope_theta",)),
        SLIDING: _rotary(reader, plain, SLIDING, theta=10_000.0, theta_keys=("local_rope_theta",)),
    }
    spans: dict[str, dict[str, Any]] = {FULL: {}, SLIDING: {"before": half, "after": half}}
    return [replace(plain, rotary=rotaries[kind], **spans[kind]) for kind in kinds]


def _read_layer_types(reader: TensorReader, layers: int, *, every: int) -> list[str]:
    """Return the type of each layer: what the settings list, or else every so many layers, from the first on, sees all."""
    kinds = reader.config.get("layer_types")
    if kinds is None:
        return [SLIDING if number % every else FULL for number in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in (FULL, SLIDING) for kind in kinds):
        raise FolderError(f"{reader.config_file}: layer_types is {quote(str(kinds))}, expected {layers} times {FULL} or {SLIDING}")
    return kinds


def _rotary(reader: TensorReader, shape: AttentionShape, kind: str, *, theta: float, theta_keys: tuple[str, ...]) -> Rotary:
    return read_rotary(reader.config_file, reader.config, size=shape.size, theta=theta, kind=kind, theta_keys=theta_keys)
