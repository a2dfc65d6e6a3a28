"""Norms and activations as graph nodes."""

from __future__ import annotations

import numpy as np

from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import GraphBuilder
from munjang.engine.tensor_reader import Norm
from munjang.types import Floats


def write_norm(pen: GraphBuilder, x: str, norm: Norm, name: str, shift: Floats | None = None) -> str:
    """Normalise rows; `shift` is added to the result of a layer norm."""
    if norm.kind != "layer":
        scale = norm.w if norm.kind == "rms" else norm.w + np.float32(1)
        return pen.add("SimplifiedLayerNormalization", [x, pen.array(f"{name}.weight", scale)], axis=-1, epsilon=norm.epsilon)
    shifted = norm.b if shift is None else (norm.b.astype(np.float64) + shift).astype(np.float32)
    arrays = [pen.array(f"{name}.weight", norm.w), pen.array(f"{name}.bias", shifted)]
    return pen.add("LayerNormalization", [x, *arrays], axis=-1, epsilon=norm.epsilon)


def write_activation(pen: GraphBuilder, x: str, activation: Activation) -> str:
    """Write one activation function."""
    if activation == "identity":
        return x
    if activation in ("gelu", "gelu_tanh"):
        return pen.add("Gelu", [x], approximate="tanh" if activation == "gelu_tanh" else "none")
    if activation == "silu":
        return pen.add("Mul", [x, pen.add("Sigmoid", [x])])
    return pen.add({"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}[activation], [x])
