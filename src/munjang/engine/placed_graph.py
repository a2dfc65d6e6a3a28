"""What a graph needs to be where it runs: how tokens are handed over, how linear layers are written, and what a session is fed.

Comes in: a `Placement`. The CPU's graph is packed and in float32 or int8. Providers that compile a whole graph get a padded one of standard
operators. In float16 the weights and the products of linear layers are float16, and everything between them (layer norm, softmax, residual
sums, pooling) stays float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.engine.devices import CPU_PROVIDER, Placement
from munjang.engine.layout import PACKED_INPUTS, PADDED_INPUTS, Feed, PackedLayout, PaddedLayout, TokenLayout, pack
from munjang.engine.linear import FloatWriter, Int8Writer, LinearWriter, PreparedLinear
from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import FLOAT, FLOAT16, INT64, GraphBuilder, Input
from munjang.types import Compute, Floats

POOL_MASK: Input = ("pool_mask", FLOAT, ["batch", "tokens"])
LARGEST_FLOAT16 = float(np.finfo(np.float16).max)
TYPES = "types"
"""The input of segment numbers."""


class GridLayout(PaddedLayout):
    """A padded batch whose pooling mask comes as an input, so that a prompt can be left out."""

    def __init__(self, builder: GraphBuilder, *, first_position: int) -> None:
        super().__init__(builder, first_position=first_position)
        self.pool_mask = "pool_mask"


class Float16Writer:
    """Linear layers with weights in float16; what comes in and goes out is float32."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def prepare(self, x: str, *, after: Activation | None = None) -> PreparedLinear:  # noqa: ARG002 (one signature for all writers)
        """Round `x` once for all layers that read it; what is beyond float16's range is cut to it, never infinite."""
        low, high = (self.builder.constant(bound, np.float32) for bound in (-LARGEST_FLOAT16, LARGEST_FLOAT16))
        return PreparedLinear(self.builder.add("Cast", [self.builder.add("Clip", [x, low, high])], to=FLOAT16), source=x)

    def apply(self, x: PreparedLinear, w: Floats, name: str, *, bias: Floats | None = None, add: str | None = None) -> str:
        """Write one product in float16; bias or residual is added in float32."""
        weight = self.builder.array(f"{name}.weight", _round_weights(w))
        y = self.builder.add("Cast", [self.builder.add("MatMul", [x.name, weight])], to=FLOAT)
        if add is not None:
            return self.builder.add("Add", [y, add])
        return y if bias is None else self.builder.add("Add", [y, self.builder.array(f"{name}.bias", bias.astype(np.float32))])

    def effective(self, w: Floats) -> Floats:
        """Return the weights after rounding."""
        return _round_weights(w).astype(np.float64)


def _round_weights(w: Floats) -> Floats:
    return np.clip(w, -LARGEST_FLOAT16, LARGEST_FLOAT16).astype(np.float16)


def make_builder(placement: Placement) -> GraphBuilder:
    """Begin a graph for this place; another device than the CPU keeps tables in its own memory."""
    return GraphBuilder(feeds_tables=placement.provider == CPU_PROVIDER and placement.layout == "packed")


def make_layout(builder: GraphBuilder, placement: Placement, *, first_position: int) -> TokenLayout:
    """Choose how tokens are handed over in this place."""
    return PackedLayout(builder) if placement.layout == "packed" else GridLayout(builder, first_position=first_position)


def make_writer(builder: GraphBuilder, compute: Compute) -> LinearWriter:
    """Return what writes linear layers in this arithmetic."""
    if compute == "float16":
        return Float16Writer(builder)
    return Int8Writer(builder) if compute == "int8" else FloatWriter(builder)  # in bfloat16 the provider rounds a graph of float32


def list_inputs(placement: Placement, *, types: bool = False) -> list[Input]:
    """Return the graph's inputs, with segment numbers if there are any."""
    if placement.layout == "packed":
        return [*PACKED_INPUTS, (TYPES, INT64, ["T"])] if types else list(PACKED_INPUTS)
    return [*PADDED_INPUTS, POOL_MASK, *([(TYPES, INT64, ["batch", "tokens"])] if types else [])]


def read_types(builder: GraphBuilder, placement: Placement) -> str:
    """Return the segment number of each row."""
    return TYPES if placement.layout == "packed" else builder.add("Reshape", [TYPES, builder.constant([-1])])


def make_feed(
    placement: Placement,
    ids: Sequence[Sequence[int]],
    *,
    first_position: int,
    hidden_prefix: int = 0,
    types: Sequence[Sequence[int]] | None = None,
) -> Feed:
    """Return the inputs for these texts; `types` are segment numbers."""
    if placement.layout == "packed":
        feed = pack(ids, first_position=first_position, hidden_prefix=hidden_prefix)
        if types is not None:
            feed[TYPES] = np.concatenate([np.asarray(one, np.int64) for one in types])
        return feed
    lengths_B = np.fromiter((len(one) for one in ids), np.int64, len(ids))
    mask_BS = np.arange(lengths_B.max()) < lengths_B[:, None]
    pooled_BS = mask_BS.astype(np.float32)
    pooled_BS[:, :hidden_prefix] = 0
    feed = {"input_ids": _fill(mask_BS, ids), "attention_mask": mask_BS.astype(np.int64), "pool_mask": pooled_BS}
    return feed if types is None else {**feed, TYPES: _fill(mask_BS, types)}


def _fill(
    mask_BS: np.ndarray[tuple[int, int], np.dtype[np.bool_]], rows: Sequence[Sequence[int]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    grid_BS = np.zeros(mask_BS.shape, np.int64)
    grid_BS[mask_BS] = np.concatenate([np.asarray(one, np.int64) for one in rows])
    return grid_BS
