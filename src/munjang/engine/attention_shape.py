"""What each layer's attention looks like: heads, how far a token sees, and by which angles positions turn it.

Comes in: a family's settings. Goes out: one `AttentionShape` per layer. A token sees the `before` tokens before it and the `after` tokens
after it; None is no limit. A causal layer is one with `after` 0, a local layer one with two limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from munjang.engine.deberta import read_terms
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
    shapes = _read_shapes(reader, heads=heads, layers=layers, width=width)
    return [replace(shape, scale=shape.scale * shape.rotary.factor**2) if shape.rotary else shape for shape in shapes]


def _read_shapes(reader: TensorReader, *, heads: int, layers: int, width: int) -> list[AttentionShape]:
    file = reader.config_file
    if not layers:
        raise FolderError(f"{file}: the encoder has no layers")
    if heads < 1 or (width % heads and not reader.config.get("head_dim")):
        raise FolderError(f"{file}: {heads} heads do not divide a width of {width}")
    size = width // heads
    plain = AttentionShape(heads=heads, size=size, key_heads=heads, scale=size**-0.5)
    if reader.family == "deberta-v2":
        terms = 1 + len(read_terms(reader))
        return [replace(plain, scale=(size * terms) ** -0.5)] * layers
    readers = {"modernbert": _read_modernbert, "qwen3": _read_qwen, "gemma3_text": _read_gemma, "eurobert": _read_eurobert}
    if reader.family in readers:
        return readers[reader.family](reader, plain, layers)
    if reader.names.theta:
        _refuse_settings(reader)
        return [replace(plain, rotary=_rotary(reader, plain, "", theta=reader.names.theta, theta_keys=THETA_KEYS))] * layers
    return [plain] * layers


THETA_KEYS = ("rope_theta", "rotary_emb_base")
OTHER_ATTENTION = {
    "rotary_emb_fraction": (1, 1.0),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (None,),
    "rotary_scaling_factor": (None, 1, 1.0),
    "use_rms_norm": (False,),
    "parallel_block": (False,),
    "prenorm": (False,),
    "causal": (False,),
    "logn_attention_scale": (False,),
    "layer_norm_type": ("layer_norm",),
    "position_embedding_type": ("rope", "rotary", "absolute", None),
}
"""Settings of the rotary post-norm families, and the values for which they are computed here."""


def _refuse_settings(reader: TensorReader) -> None:
    for key, known in OTHER_ATTENTION.items():
        if key in reader.config and reader.config[key] not in known:
            raise FolderError(f"{reader.config_file}: {key} is {quote(str(reader.config[key]))}, which does not run on the fast engine")


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


def _read_grouped(reader: TensorReader, plain: AttentionShape) -> AttentionShape:
    """Heads of a size of their own, and fewer for keys than for queries."""
    size = reader.size("head_dim", default=plain.size)
    key_heads = reader.size("num_key_value_heads", default=plain.heads)
    if plain.heads % key_heads:
        raise FolderError(f"{reader.config_file}: {key_heads} heads of keys do not divide {plain.heads} heads")
    return replace(plain, size=size, key_heads=key_heads, scale=size**-0.5)


def _read_qwen(reader: TensorReader, plain: AttentionShape, layers: int) -> list[AttentionShape]:
    """A token sees itself and those before it; in the layers that say so only the nearest of them."""
    shape = _read_grouped(reader, plain)
    shape = replace(shape, after=0, rotary=_rotary(reader, shape, "", theta=10_000.0, theta_keys=("rope_theta",)))
    if not reader.flag("use_sliding_window"):
        return [shape] * layers
    window = reader.size("sliding_window")
    first = reader.whole("max_window_layers", default=28)
    kinds = reader.config.get("layer_types") or [SLIDING if number >= first else FULL for number in range(layers)]
    return [replace(shape, before=window - 1) if kind == SLIDING else shape for kind in _check_layer_types(reader, kinds, layers)]


def _read_gemma(reader: TensorReader, plain: AttentionShape, layers: int) -> list[AttentionShape]:
    """Every sixth layer sees all, or all before it; the others see a window."""
    if reader.config.get("attn_logit_softcapping") is not None:
        raise FolderError(f"{reader.config_file}: attn_logit_softcapping does not run on the fast engine")
    shape = _read_grouped(reader, replace(plain, size=256))
    shape = replace(shape, scale=reader.size("query_pre_attn_scalar", default=256) ** -0.5)
    both, window = reader.flag("use_bidirectional_attention"), reader.size("sliding_window", default=4_096)
    every = reader.size("sliding_window_pattern", default=6)
    kinds = reader.config.get("layer_types") or [SLIDING if (number + 1) % every else FULL for number in range(layers)]
    reach = window // 2 if both else window - 1
    full = replace(shape, after=None if both else 0, rotary=_rotary(reader, shape, FULL, theta=1e6, theta_keys=("rope_theta",)))
    local = _rotary(reader, shape, SLIDING, theta=10_000.0, theta_keys=("rope_local_base_freq",))
    near = replace(shape, before=reach, after=reach if both else 0, rotary=local)
    return [near if kind == SLIDING else full for kind in _check_layer_types(reader, kinds, layers)]


def _read_eurobert(reader: TensorReader, plain: AttentionShape, layers: int) -> list[AttentionShape]:
    shape = _read_grouped(reader, plain)
    return [replace(shape, rotary=_rotary(reader, shape, "", theta=10_000.0, theta_keys=("rope_theta",)))] * layers


def _read_layer_types(reader: TensorReader, layers: int, *, every: int) -> list[str]:
    """Return the type of each layer: what the settings list, or else every so many layers, from the first on, sees all."""
    kinds = reader.config.get("layer_types")
    if kinds is None:
        return [SLIDING if number % every else FULL for number in range(layers)]
    return _check_layer_types(reader, kinds, layers)


def _check_layer_types(reader: TensorReader, kinds: object, layers: int) -> list[str]:
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in (FULL, SLIDING) for kind in kinds):
        raise FolderError(f"{reader.config_file}: layer_types is {quote(str(kinds))}, expected {layers} times {FULL} or {SLIDING}")
    return kinds


def _rotary(reader: TensorReader, shape: AttentionShape, kind: str, *, theta: float, theta_keys: tuple[str, ...]) -> Rotary:
    return read_rotary(reader.config_file, reader.config, size=shape.size, theta=theta, kind=kind, theta_keys=theta_keys)
