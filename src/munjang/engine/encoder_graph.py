"""A backbone → graph nodes from token ids to one row of hidden state per token.

With `first_only` the last layer is computed for each text's first token alone: nothing else is read. How a layer is written stands in
`layer_graph.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.adapters import add_low_rank_rows, add_task_row
from munjang.engine.backbone import Backbone, EncoderLayer, PostNorms, find_type_row
from munjang.engine.blocked_attention import ScoreBias
from munjang.engine.deberta import Convolution, DisentangledBias
from munjang.engine.layer_graph import GraphContext, LayerWriter, to_float64
from munjang.engine.layout import TokenLayout
from munjang.engine.linear import LinearWriter, write_activation, write_norm
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.rotary import RotaryWriter
from munjang.errors import DeviceError
from munjang.types import Floats

MPNET_MAX_DISTANCE = 128


@dataclass(frozen=True)
class EncoderOutput:
    """Names of what was written."""

    hidden: str
    """(T, D), or (B, D) with `first_only`."""
    layers: tuple[str, ...]
    """The embedding's and every layer's output, when asked for."""


def write_encoder(
    builder: GraphBuilder,
    backbone: Backbone,
    layout: TokenLayout,
    writer: LinearWriter,
    *,
    first_only: bool = False,
    keep_layers: bool = False,
    types: str | None = None,
) -> EncoderOutput:
    """Write the whole encoder; `types` names the input of segment numbers, if there is one."""
    if layout.portable and not _is_portable(backbone):
        raise DeviceError(f"a {backbone.family} encoder needs operators that only onnxruntime has; there is no portable graph of it yet")
    if backbone.relative_bias is not None:
        layout.set_relative_bias(_expand_mpnet_table(backbone.relative_bias, backbone.max_tokens))
    context = GraphContext(builder, layout, writer, RotaryWriter(builder, layout.positions), backbone.activation)
    if isinstance(backbone.layers[0].norms, PostNorms):
        return _write_post_norm(context, backbone, types, first_only=first_only, keep_layers=keep_layers)
    return _write_pre_norm(context, backbone, types, first_only=first_only, keep_layers=keep_layers)


def _write_post_norm(context: GraphContext, backbone: Backbone, types: str | None, *, first_only: bool, keep_layers: bool) -> EncoderOutput:
    builder = context.builder
    shift = to_float64(backbone.layers[0].attention_out.b)
    x = _embed(context, backbone, shift, types)
    kept = [_remove_shift(builder, x, shift)] if keep_layers else []
    for number, layer in enumerate(backbone.layers):
        assert isinstance(layer.norms, PostNorms)
        last = number + 1 == len(backbone.layers)
        following = np.zeros(1) if last else to_float64(backbone.layers[number + 1].attention_out.b)
        convolution = backbone.convolution if number == 0 else None
        embedded = _remove_shift(builder, x, shift) if convolution else ""
        step = LayerWriter(context, layer, f"layer{_find_first_use(backbone, number)}", bias=_relate(context, backbone, layer, number))
        x = step.write_post_norm(
            x,
            layer.norms,
            shift=shift,
            following=np.zeros(1) if convolution else following,
            number=number,
            first_only=first_only and last and not convolution,
        )
        if convolution:
            x = _convolve(context, convolution, embedded, x, following)
            x = builder.add("Gather", [x, context.layout.first_rows()]) if first_only and last else x
        shift = following
        if keep_layers:
            kept.append(_remove_shift(builder, x, shift))
    return EncoderOutput(x, tuple(kept))


def _relate(context: GraphContext, backbone: Backbone, layer: EncoderLayer, number: int) -> ScoreBias | None:
    """Return the writer of the layer's relative terms, if it has any."""
    if layer.relative is None or backbone.buckets is None:
        return None
    buckets = context.builder.array("buckets", backbone.buckets)
    middle = len(backbone.buckets) // 2
    return DisentangledBias(context.builder, layer.relative, heads=backbone.heads, buckets=buckets, middle=middle, name=f"layer{number}")


def _convolve(context: GraphContext, convolution: Convolution, embedded: str, x: str, shift: Floats) -> str:
    """Convolve the embeddings of each text, add the layer's output and norm the sum; return it + shift."""
    builder, layout = context.builder, context.layout
    mask_BS1 = builder.add("Unsqueeze", [builder.add("Cast", [layout.mask], to=FLOAT), builder.constant([-1])])
    grid_BSD = builder.add("Mul", [builder.add("Gather", [embedded, layout.slots]), mask_BS1])
    inputs = [
        builder.add("Transpose", [grid_BSD], perm=[0, 2, 1]),
        builder.array("conv.weight", convolution.w_DGK),
        builder.array("conv.bias", convolution.b),
    ]
    padding = convolution.w_DGK.shape[2] // 2
    convolved = builder.add("Conv", inputs, pads=[padding, padding], group=convolution.groups)
    flat = builder.add("Reshape", [builder.add("Transpose", [convolved], perm=[0, 2, 1]), builder.constant([-1, len(convolution.b)])])
    rows = write_activation(builder, builder.add("Gather", [flat, layout.rows]), convolution.activation)
    return write_norm(builder, builder.add("Add", [x, rows]), convolution.norm, "conv.norm", shift)


def _write_pre_norm(context: GraphContext, backbone: Backbone, types: str | None, *, first_only: bool, keep_layers: bool) -> EncoderOutput:
    builder = context.builder
    x = _embed(context, backbone, np.zeros(1), types)
    kept = [x]
    for number, layer in enumerate(backbone.layers):
        assert not isinstance(layer.norms, PostNorms)
        last = number + 1 == len(backbone.layers)
        x = LayerWriter(context, layer, f"layer{number}").write_pre_norm(x, layer.norms, first_only=first_only and last)
        kept.append(x)
    if backbone.final_norm is not None:
        x = kept[-1] = write_norm(builder, x, backbone.final_norm, "final_norm")
    return EncoderOutput(x, tuple(kept) if keep_layers else ())


def _embed(context: GraphContext, backbone: Backbone, shift: Floats, types: str | None) -> str:
    """Sum token, position and segment embeddings, normalise, and project where the family does."""
    builder, writer, layout = context.builder, context.writer, context.layout
    x = builder.rows("words", backbone.words_VE, layout.ids)
    if backbone.low_words is not None:
        x = add_low_rank_rows(builder, layout.ids, x, backbone.low_words, "words")
    if backbone.low_types is not None and not types:
        x = add_task_row(builder, x, backbone.low_types, "types")
    if backbone.word_scale != 1:
        x = builder.add("Mul", [x, builder.constant(backbone.word_scale, np.float32)])
    if backbone.positions_PE is not None:
        positions = backbone.positions_PE if types else backbone.positions_PE + find_type_row(backbone)
        x = builder.add("Add", [x, builder.add("Gather", [builder.array("positions_and_type", positions), layout.positions])])
    elif backbone.types_E is not None and not types:
        x = builder.add("Add", [x, builder.array("type", find_type_row(backbone))])
    if types and backbone.types_E is not None:
        x = builder.add("Add", [x, builder.add("Gather", [builder.array("segments", backbone.types_E), types])])
    projection = backbone.projection
    if projection is not None and backbone.norms_projection:
        x, projection = writer.apply(writer.prepare(x), projection.w, "projection", bias=projection.bias), None
    if backbone.embedding_norm is not None:
        x = write_norm(builder, x, backbone.embedding_norm, "embedding_norm", np.zeros(1) if projection else shift)
    if projection is None:
        return x
    return writer.apply(writer.prepare(x), projection.w, "projection", bias=to_float64(projection.b) + shift)


def _find_first_use(backbone: Backbone, number: int) -> int:
    """Return the number of the first layer that has this layer's weights."""
    return next(first for first, layer in enumerate(backbone.layers) if layer is backbone.layers[number])


def _is_portable(backbone: Backbone) -> bool:
    layer = backbone.layers[0]
    plain = all(layer.shape.sees_all and layer.shape.rotary is None and layer.relative is None for layer in backbone.layers)
    return plain and isinstance(layer.norms, PostNorms) and backbone.convolution is None


def _remove_shift(builder: GraphBuilder, x: str, shift: Floats) -> str:
    return builder.add("Sub", [x, builder.constant(np.broadcast_to(shift, shift.shape), np.float32)])


def _expand_mpnet_table(bias_BN: Floats, longest: int) -> Floats:
    """Return MPNet's bias for every distance key − query from −(longest−1) to longest−1."""
    distance = np.arange(-(longest - 1), longest)
    half = bias_BN.shape[0] // 2
    exact = half // 2
    size = np.abs(distance)
    far = exact + (np.log(np.maximum(size, 1) / exact) / np.log(MPNET_MAX_DISTANCE / exact) * (half - exact)).astype(np.int64)
    bucket = np.where(size < exact, size, np.minimum(far, half - 1)) + np.where(distance > 0, half, 0)
    return np.ascontiguousarray(bias_BN[bucket])
