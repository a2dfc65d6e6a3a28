"""A backbone → graph nodes from token ids to one row of hidden state per token.

Two rewritings make it fast without changing what is computed:

- The bias of a linear layer that feeds a residual sum is moved into the layer norm before it (x + b instead of x), and the layers that read
  that x get it subtracted from their own bias. The residual sum then rides inside the matrix product.
- With `first_only` the last layer is computed for each text's first token alone: nothing else is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.backbone import Backbone, EncoderLayer, Linear, Norm, find_type_row
from munjang.engine.layout import TokenLayout
from munjang.engine.linear import LinearWriter, PreparedLinear
from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import MICROSOFT, GraphBuilder
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
    pen: GraphBuilder,
    backbone: Backbone,
    layout: TokenLayout,
    writer: LinearWriter,
    *,
    first_only: bool = False,
    keep_layers: bool = False,
    types: str | None = None,
) -> EncoderOutput:
    """Write the whole encoder; `types` names the input of segment numbers, if there is one."""
    if backbone.relative_bias is not None:
        layout.set_relative_bias(_expand_mpnet_table(backbone.relative_bias, backbone.max_tokens))
    shift = _to_float64(backbone.layers[0].attention_out.b)
    x = _embed(pen, backbone, layout, writer, shift, types)
    kept = [_remove_shift(pen, x, shift)] if keep_layers else []
    for number, layer in enumerate(backbone.layers):
        last = number + 1 == len(backbone.layers)
        following = np.zeros(1) if last else _to_float64(backbone.layers[number + 1].attention_out.b)
        step = _LayerWriter(pen, layout, writer, layer, f"layer{number}", backbone.heads, backbone.activation)
        x = step.write(x, shift=shift, following=following, first_only=first_only and last)
        shift = following
        if keep_layers:
            kept.append(_remove_shift(pen, x, shift))
    return EncoderOutput(x, tuple(kept))


def _embed(pen: GraphBuilder, backbone: Backbone, layout: TokenLayout, writer: LinearWriter, shift: Floats, types: str | None) -> str:
    """Sum token, position and segment embeddings, normalise, and project where the family does."""
    positions = backbone.positions_PE if types else backbone.positions_PE + find_type_row(backbone)
    words = pen.add("Gather", [pen.array("words", backbone.words_VE), layout.ids])
    x = pen.add("Add", [words, pen.add("Gather", [pen.array("positions_and_type", positions), layout.positions])])
    if types and backbone.types_E is not None:
        x = pen.add("Add", [x, pen.add("Gather", [pen.array("segments", backbone.types_E), types])])
    if backbone.projection is None:
        return _write_norm(pen, x, backbone.embedding_norm, "embedding_norm", shift)
    normed = _write_norm(pen, x, backbone.embedding_norm, "embedding_norm", np.zeros(1))
    projection = backbone.projection
    return writer.apply(writer.prepare(normed), projection.w, "projection", bias=_to_float64(projection.b) + shift)


class _LayerWriter:
    """Writes one transformer layer."""

    def __init__(
        self,
        pen: GraphBuilder,
        layout: TokenLayout,
        writer: LinearWriter,
        layer: EncoderLayer,
        name: str,
        heads: int,
        activation: Activation,
    ) -> None:
        self.pen, self.layout, self.writer = pen, layout, writer
        self.layer, self.name, self.heads, self.activation = layer, name, heads, activation

    def write(self, x: str, *, shift: Floats, following: Floats, first_only: bool) -> str:
        """Take x + shift, return the layer's output + `following`."""
        layer, writer = self.layer, self.writer
        ready = writer.prepare(x)
        key, value = self._read(ready, layer.key, "key", shift), self._read(ready, layer.value, "value", shift)
        if first_only:
            x = self.pen.add("Gather", [x, self.layout.first_rows()])
            ready = writer.prepare(x)
        query = self._read(ready, layer.query, "query", shift)
        width = layer.query.w.shape[0]
        context = self.layout.attend(query, key, value, heads=self.heads, width=width, first_only=first_only)
        summed = writer.apply(writer.prepare(context), layer.attention_out.w, f"{self.name}.attention_out", add=x)
        inner_shift = _to_float64(layer.down.b)
        x = _write_norm(self.pen, summed, layer.attention_norm, f"{self.name}.attention_norm", inner_shift)
        raised = self._raise(x, inner_shift)
        summed = writer.apply(writer.prepare(raised, after=self.activation), layer.down.w, f"{self.name}.down", add=x)
        return _write_norm(self.pen, summed, layer.out_norm, f"{self.name}.out_norm", following)

    def _read(self, x: PreparedLinear, linear: Linear, part: str, shift: Floats) -> str:
        return self.writer.apply(x, linear.w, f"{self.name}.{part}", bias=self._corrected(linear, shift))

    def _raise(self, x: str, shift: Floats) -> str:
        bias, name = self._corrected(self.layer.up, shift), f"{self.name}.up"
        ready = self.writer.prepare(x)
        if ready.scale and self.activation == "gelu":  # int8 has no bias inside its product; this adds it in the same pass
            raised = self.writer.apply(ready, self.layer.up.w, name)
            return self.pen.add("BiasGelu", [raised, self.pen.array(f"{name}.bias", bias.astype(np.float32))], domain=MICROSOFT)
        return write_activation(self.pen, self.writer.apply(ready, self.layer.up.w, name, bias=bias), self.activation)

    def _corrected(self, linear: Linear, shift: Floats) -> Floats:
        return _to_float64(linear.b) - shift @ self.writer.effective(linear.w)


def write_activation(pen: GraphBuilder, x: str, activation: Activation) -> str:
    """Write one activation function."""
    if activation == "identity":
        return x
    if activation in ("gelu", "gelu_tanh"):
        return pen.add("Gelu", [x], approximate="tanh" if activation == "gelu_tanh" else "none")
    return pen.add({"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}[activation], [x])


def _write_norm(pen: GraphBuilder, x: str, norm: Norm, name: str, shift: Floats) -> str:
    weight = pen.array(f"{name}.weight", norm.w)
    bias = pen.array(f"{name}.bias", (_to_float64(norm.b) + shift).astype(np.float32))
    return pen.add("LayerNormalization", [x, weight, bias], axis=-1, epsilon=norm.epsilon)


def _remove_shift(pen: GraphBuilder, x: str, shift: Floats) -> str:
    return pen.add("Sub", [x, pen.constant(np.broadcast_to(shift, shift.shape), np.float32)])


def _to_float64(array: Floats) -> Floats:
    return array.astype(np.float64)


def _expand_mpnet_table(bias_BN: Floats, longest: int) -> Floats:
    """Return MPNet's bias for every distance key − query from −(longest−1) to longest−1."""
    distance = np.arange(-(longest - 1), longest)
    half = bias_BN.shape[0] // 2
    exact = half // 2
    size = np.abs(distance)
    far = exact + (np.log(np.maximum(size, 1) / exact) / np.log(MPNET_MAX_DISTANCE / exact) * (half - exact)).astype(np.int64)
    bucket = np.where(size < exact, size, np.minimum(far, half - 1)) + np.where(distance > 0, half, 0)
    return np.ascontiguousarray(bias_BN[bucket])
