"""One transformer layer as graph nodes: norms after the sums, or before the parts.

In a post-norm layer the bias of a linear layer that feeds a residual sum is moved into the layer norm before it (x + b instead of x), and
the layers that read that x get it subtracted from their own bias. The residual sum then rides inside the matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.adapters import add_low_rank
from munjang.engine.backbone import EncoderLayer, PostNorms, PreNorms
from munjang.engine.blocked_attention import ScoreBias
from munjang.engine.layout import TokenLayout
from munjang.engine.linear import LinearWriter, PreparedLinear, write_activation, write_norm
from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import MICROSOFT, GraphBuilder
from munjang.engine.rotary import RotaryWriter
from munjang.engine.tensor_reader import Linear, Norm
from munjang.types import Floats


@dataclass(frozen=True)
class GraphContext:
    """What the writers of all layers share."""

    builder: GraphBuilder
    layout: TokenLayout
    writer: LinearWriter
    rotary: RotaryWriter
    activation: Activation


class LayerWriter:
    """Writes one transformer layer; `name` begins its arrays' names, which layers of equal weights share."""

    def __init__(self, context: GraphContext, layer: EncoderLayer, name: str, *, bias: ScoreBias | None = None) -> None:
        self.context, self.layer, self.name, self.bias = context, layer, name, bias
        self.builder, self.writer, self.layout = context.builder, context.writer, context.layout

    def write_post_norm(self, x: str, norms: PostNorms, *, shift: Floats, following: Floats, number: int, first_only: bool) -> str:
        """Take x + shift, return the output + `following` of a layer whose norms stand after the sums."""
        layer, writer = self.layer, self.writer
        context, x = self._attend(x, x, shift, first_only=first_only)
        summed = self._apply(writer.prepare(context), layer.attention_out, "attention_out", add=x)
        inner_shift = to_float64(layer.down.b)
        x = write_norm(self.builder, summed, norms.attention, f"{self.name}.attention_norm", inner_shift)
        summed = self._feed_forward(x, inner_shift, add=x)
        return write_norm(self.builder, summed, norms.out, f"layer{number}.out_norm", following)

    def write_pre_norm(self, x: str, norms: PreNorms, *, first_only: bool) -> str:
        """Take and return a sum that no norm has touched."""
        none = np.zeros(1)
        ready = self._norm(x, norms.before_attention, "before_attention")
        context, x = self._attend(ready, x, none, first_only=first_only)
        x = self._add(self.writer.prepare(context), self.layer.attention_out, "attention_out", norms.after_attention, x)
        ready = self._norm(x, norms.before_mlp, "before_mlp")
        if norms.after_mlp is None and self.layer.down.bias is None:
            return self._feed_forward(ready, none, add=x)
        lowered = self._feed_forward(ready, none)
        return self.builder.add("Add", [x, self._norm(lowered, norms.after_mlp, "after_mlp")])

    def _attend(self, x: str, residual: str, shift: Floats, *, first_only: bool) -> tuple[str, str]:
        """Return the attention output, and the rows of `residual` that belong to it."""
        layer, writer, shape = self.layer, self.writer, self.layer.shape
        ready = writer.prepare(x)
        key, value = self._read(ready, layer.key, "key", shift), self._read(ready, layer.value, "value", shift)
        if first_only:
            first = self.layout.first_rows()
            same = residual == x
            x = self.builder.add("Gather", [x, first])
            residual = x if same else self.builder.add("Gather", [residual, first])
            ready = writer.prepare(x)
        query = self._read(ready, layer.query, "query", shift)
        query = self._place(query, layer.query_norm, "query_norm", shape.heads, turned=not first_only)  # place 0 is turned by nothing
        key = self._place(key, layer.key_norm, "key_norm", shape.key_heads, turned=True)
        key, value = self._repeat(key), self._repeat(value)
        return self.layout.attend(query, key, value, shape=shape, first_only=first_only, bias=self.bias), residual

    def _place(self, x: str, norm: Norm | None, name: str, heads: int, *, turned: bool) -> str:
        """Norm the heads of queries or keys and turn them by their positions, where the family does."""
        shape, builder = self.layer.shape, self.builder
        if norm is not None:
            normed = write_norm(builder, builder.add("Reshape", [x, builder.constant([-1, shape.size])]), norm, f"{self.name}.{name}")
            x = builder.add("Reshape", [normed, builder.constant([-1, heads * shape.size])])
        if shape.rotary is None or not turned:
            return x
        return self.context.rotary.write(x, shape.rotary, heads=heads, width=heads * shape.size)

    def _repeat(self, x: str) -> str:
        """Give each query head its key or value, where several share one."""
        shape, builder = self.layer.shape, self.builder
        if shape.key_heads == shape.heads:
            return x
        apart = builder.add("Reshape", [x, builder.constant([-1, shape.key_heads, 1, shape.size])])
        wide = builder.add("Expand", [apart, builder.constant([1, 1, shape.heads // shape.key_heads, 1])])
        return builder.add("Reshape", [wide, builder.constant([-1, shape.width])])

    def _feed_forward(self, x: str, shift: Floats, *, add: str | None = None) -> str:
        """Write the feed-forward part of x + shift; with `add` its last bias is left out, the residual sum is in."""
        layer, writer, activation = self.layer, self.writer, self.context.activation
        ready = writer.prepare(x)
        if layer.gate is None:
            inner, after = self._raise(ready, shift), activation
        else:
            gate = write_activation(self.builder, self._read(ready, layer.gate, "gate", shift), activation)
            inner, after = self.builder.add("Mul", [gate, self._read(ready, layer.up, "up", shift)]), None
        bias = None if add is not None else layer.down.bias
        return self._apply(writer.prepare(inner, after=after), layer.down, "down", bias=bias, add=add)

    def _raise(self, ready: PreparedLinear, shift: Floats) -> str:
        bias, name, up = self._correct_bias(self.layer.up, shift), f"{self.name}.up", self.layer.up
        if ready.scale and self.context.activation in ("gelu", "gelu_tanh") and up.low is None:
            # int8 has no bias inside its product; this adds it in the same pass. Its tanh form is within 5e-4 of GELU, a fraction of a step
            # of int8, and takes 0.6 of BiasGelu's time
            raised = self.writer.apply(ready, up.w, name)
            return self.builder.add("FastGelu", [raised, self.builder.array(f"{name}.bias", bias.astype(np.float32))], domain=MICROSOFT)
        return write_activation(self.builder, self._apply(ready, up, "up", bias=bias, shift=shift), self.context.activation)

    def _add(self, x: PreparedLinear, linear: Linear, part: str, norm: Norm | None, residual: str) -> str:
        if norm is None and linear.bias is None:
            return self._apply(x, linear, part, add=residual)
        y = self._apply(x, linear, part, bias=linear.bias)
        return self.builder.add("Add", [residual, self._norm(y, norm, f"after_{part}")])

    def _norm(self, x: str, norm: Norm | None, name: str) -> str:
        return x if norm is None else write_norm(self.builder, x, norm, f"{self.name}.{name}")

    def _read(self, x: PreparedLinear, linear: Linear, part: str, shift: Floats) -> str:
        bias = self._correct_bias(linear, shift)
        return self._apply(x, linear, part, bias=bias if bias.any() else None, shift=shift)

    def _apply(
        self,
        x: PreparedLinear,
        linear: Linear,
        part: str,
        *,
        bias: Floats | None = None,
        add: str | None = None,
        shift: Floats | None = None,
    ) -> str:
        """Write one linear layer; `shift` is what x has been shifted by, which `bias` makes up for."""
        name = f"{self.name}.{part}"
        y = self.writer.apply(x, linear.w, name, bias=bias, add=add)
        return y if linear.low is None else add_low_rank(self.builder, x.source, y, linear.low, name, shift)

    def _correct_bias(self, linear: Linear, shift: Floats) -> Floats:
        if not shift.any():
            return to_float64(linear.b)
        return to_float64(linear.b) - shift @ self.writer.effective(linear.w)


def to_float64(array: Floats) -> Floats:
    """Return the array in double precision."""
    return array.astype(np.float64)
