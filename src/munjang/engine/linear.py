"""How a layer is written into a graph: linear layers in float32 or with int8 weights, norms and activations.

A writer first `prepare`s an input (once, however many layers read it) and then `apply`s layers to it. In int8 every row of the input is
scaled by its own largest value, so a token's result does not depend on the other tokens of the batch. Weights are int8 per output
column, 7 bits of the range: processors without VNNI add pairs of products in 16 bits, and more bits would overflow there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import MICROSOFT, GraphBuilder
from munjang.engine.tensor_reader import Norm
from munjang.types import Floats


def write_norm(builder: GraphBuilder, x: str, norm: Norm, name: str, shift: Floats | None = None) -> str:
    """Normalise rows; `shift` is added to the result of a layer norm."""
    if norm.kind != "layer":
        scale = norm.w if norm.kind == "rms" else norm.w + np.float32(1)
        return builder.add("SimplifiedLayerNormalization", [x, builder.array(f"{name}.weight", scale)], axis=-1, epsilon=norm.epsilon)
    shifted = norm.b if shift is None else (norm.b.astype(np.float64) + shift).astype(np.float32)
    arrays = [builder.array(f"{name}.weight", norm.w), builder.array(f"{name}.bias", shifted)]
    return builder.add("LayerNormalization", [x, *arrays], axis=-1, epsilon=norm.epsilon)


def write_activation(builder: GraphBuilder, x: str, activation: Activation) -> str:
    """Write one activation function."""
    if activation == "identity":
        return x
    if activation in ("gelu", "gelu_tanh"):
        return builder.add("Gelu", [x], approximate="tanh" if activation == "gelu_tanh" else "none")
    if activation == "silu":
        return builder.add("Mul", [x, builder.add("Sigmoid", [x])])
    return builder.add({"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}[activation], [x])


WEIGHT_STEPS = 64
ACTIVATION_STEPS = 127
SMALLEST_SCALE = 1e-12
LOWEST = {"gelu": 0.17, "gelu_tanh": 0.1701, "relu": SMALLEST_SCALE}
"""No value of these functions is below the negative of this."""


@dataclass(frozen=True)
class PreparedLinear:
    """An input made ready: its name, and in int8 the scale of each row."""

    name: str
    scale: str = ""
    source: str = ""
    """The input itself, as rows of float32."""


class LinearWriter(Protocol):
    """Writes linear layers into a graph."""

    def prepare(self, x: str, *, after: Activation | None = None) -> PreparedLinear:
        """Make `x` (rows, in) ready; `after` is the activation it came out of, if any."""
        ...

    def apply(self, x: PreparedLinear, w: Floats, name: str, *, bias: Floats | None = None, add: str | None = None) -> str:
        """Write x @ w + bias, or x @ w + add, and return the output."""
        ...

    def effective(self, w: Floats) -> Floats:
        """Return the weights as the graph will really apply them, in float64."""
        ...


class FloatWriter:
    """Linear layers in float32; bias or residual goes into the same matrix product."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def prepare(self, x: str, *, after: Activation | None = None) -> PreparedLinear:  # noqa: ARG002 (one signature for all writers)
        """Return `x` as it is."""
        return PreparedLinear(x, source=x)

    def apply(self, x: PreparedLinear, w: Floats, name: str, *, bias: Floats | None = None, add: str | None = None) -> str:
        """Write one Gemm; it reads the weight as (out, in), as files keep it, so that a mapped file is not copied."""
        inputs = [x.name, self.builder.array(f"{name}.weight", w.T.astype(np.float32, copy=False))]
        if add is not None:
            inputs.append(add)
        elif bias is not None:
            inputs.append(self.builder.array(f"{name}.bias", bias.astype(np.float32)))
        return self.builder.add("Gemm", inputs, transB=1)

    def effective(self, w: Floats) -> Floats:
        """Return `w` itself."""
        return w.astype(np.float64)


class Int8Writer:
    """Linear layers with int8 weights per column and uint8 inputs per row."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def prepare(self, x: str, *, after: Activation | None = None) -> PreparedLinear:
        """Quantise each row of `x` by its own largest value."""
        builder = self.builder
        last_axis = builder.constant([-1])
        largest = builder.add("ReduceMax", [x, last_axis], keepdims=1)
        if after in LOWEST:
            lowest = builder.constant([LOWEST[after]], np.float32)
        else:
            lowest = builder.add("Neg", [builder.add("ReduceMin", [x, last_axis], keepdims=1)])
        scale = builder.add("Max", [largest, lowest, builder.constant([SMALLEST_SCALE], np.float32)])
        steps, middle = self._steps()
        step_T = builder.add("Reshape", [builder.add("Mul", [scale, steps]), builder.constant([-1])])
        middle_T = builder.add("Expand", [middle, builder.add("Shape", [step_T])])
        return PreparedLinear(builder.add("QuantizeLinear", [x, step_T, middle_T], axis=0), scale, x)

    def apply(self, x: PreparedLinear, w: Floats, name: str, *, bias: Floats | None = None, add: str | None = None) -> str:
        """Write an integer product, scaled back per row and column."""
        builder = self.builder
        columns, scales = _quantize(w)
        steps, middle = self._steps()
        weights = [builder.array(f"{name}.weight", columns), steps, builder.array(f"{name}.scale", scales), middle]
        zeros = builder.constant(np.zeros(len(scales)), np.int8)
        product = builder.add("MatMulIntegerToFloat", [x.name, *weights, zeros], domain=MICROSOFT)
        y = builder.add("Mul", [product, x.scale])
        if add is not None:
            return builder.add("Add", [y, add])
        return y if bias is None else builder.add("Add", [y, builder.array(f"{name}.bias", bias.astype(np.float32))])

    def effective(self, w: Floats) -> Floats:
        """Return the weights after rounding."""
        columns, scales = _quantize(w)
        return columns.astype(np.float64) * scales.astype(np.float64)

    def _steps(self) -> tuple[str, str]:
        return self.builder.constant(1 / ACTIVATION_STEPS, np.float32), self.builder.constant(128, np.uint8)


def _quantize(w: Floats) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int8]], Floats]:
    scales = np.maximum(np.abs(w).max(axis=0) / WEIGHT_STEPS, SMALLEST_SCALE).astype(np.float32)
    return np.rint(w / scales).astype(np.int8), scales
