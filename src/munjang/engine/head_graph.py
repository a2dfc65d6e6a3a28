"""Hidden states → one vector per text, inside the graph: pooling, then whatever the folder puts after it.

Padding never leaks: only places with pool_mask 1 count, and a text without any pools to zeros, not NaN. `write_layer_mix` comes
before pooling where a folder asks for the mean of its last layers, weighted by learned weights (`WeightedLayerPooling`).

Shapes: B texts, S places, T tokens, L layers, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.engine.encoder_graph import EncoderOutput
from munjang.engine.layout import TokenLayout
from munjang.engine.linear import write_activation
from munjang.engine.modules import DenseModule, LayerMixModule, LayerNormModule, Module, NormalizeModule, PoolingModule
from munjang.engine.onnxgraph import BOOL, FLOAT, GraphBuilder
from munjang.engine.weights import find_weights
from munjang.errors import FolderError
from munjang.types import Pooling


def write_layer_mix(builder: GraphBuilder, out: EncoderOutput, modules: Sequence[Module]) -> str:
    """Return the token rows that the folder's modules ask for: a mean of layers, or without that module the last layer's."""
    module = next((module for module in modules if isinstance(module, LayerMixModule)), None)
    if module is None:
        return out.hidden
    weights, chosen = find_weights(module.folder), out.layers[module.first_layer :]
    if module.layers + 1 != len(out.layers):
        raise FolderError(f"{module.folder}: mixes the layers of an encoder with {module.layers}, this one has {len(out.layers) - 1}")
    if "layer_weights" not in weights or weights.shape("layer_weights") != (len(chosen),):
        raise FolderError(f"{module.folder}: expected layer_weights of shape ({len(chosen)},)")
    shares_L = weights.floats("layer_weights").astype(np.float64)
    if not abs(total := shares_L.sum()) > 0:
        raise FolderError(f"{module.folder}: the layer_weights sum to {total:g}, expected another sum than 0")
    parts = [
        builder.add("Mul", [layer, builder.constant(share, np.float32)]) for layer, share in zip(chosen, shares_L / total, strict=True)
    ]
    return parts[0] if len(parts) == 1 else builder.add("Sum", parts)


VERY_NEGATIVE = -1e9
LAYER_NORM_EPSILON = 1e-5


def reads_first_only(modules: Sequence[Module]) -> bool:
    """Tell whether the modules read nothing but each text's first token; the first after a prompt is not that one."""
    return any(isinstance(module, PoolingModule) and _is_first_token(module) for module in modules)


def _is_first_token(module: PoolingModule) -> bool:
    return module.modes == ("cls",) and module.include_prompt


def compute_head_width(modules: Sequence[Module], width: int) -> int:
    """Return the width of the final vector, given the token vectors'."""
    for module in modules:
        if isinstance(module, PoolingModule):
            width *= len(module.modes)
        elif isinstance(module, DenseModule):
            width = module.out_features
    return width


def write_head(builder: GraphBuilder, hidden: str, layout: TokenLayout | None, modules: Sequence[Module], width: int) -> str:
    """Write the modules after the encoder, whose token vectors have `width` numbers; return the output.

    Without a layout, `hidden` is pooled already.
    """
    x = hidden
    for number, module in enumerate(modules):
        if isinstance(module, PoolingModule) and layout is not None:
            x = _write_pooling(builder, hidden, layout, module)
        elif isinstance(module, DenseModule):
            x = _write_dense(builder, x, module, f"dense{number}", compute_head_width(modules[:number], width))
        elif isinstance(module, LayerNormModule):
            x = _write_layer_norm(builder, x, module, f"norm{number}", compute_head_width(modules[:number], width))
        elif isinstance(module, NormalizeModule):
            x = write_normalize(builder, x)
    return x


def write_normalize(builder: GraphBuilder, x: str) -> str:
    """Scale rows to length one; a zero row stays zero."""
    length = builder.add("ReduceL2", [x, builder.constant([-1])], keepdims=1)
    return builder.add("Div", [x, builder.add("Max", [length, builder.constant([1e-12], np.float32)])])


def _write_pooling(builder: GraphBuilder, hidden: str, layout: TokenLayout, module: PoolingModule) -> str:
    if _is_first_token(module):
        return hidden  # the encoder gave the first tokens only
    pool = _PoolingWriter(builder, hidden, layout)
    parts = [pool.write(mode) for mode in module.modes]
    return parts[0] if len(parts) == 1 else builder.add("Concat", parts, axis=-1)


def write_pooling(builder: GraphBuilder, hidden: str, layout: TokenLayout, mode: Pooling) -> str:
    """Pool the token vectors of each text."""
    return _PoolingWriter(builder, hidden, layout).write(mode)


class _PoolingWriter:
    """Writes poolings of one hidden state; what they share is written once."""

    def __init__(self, builder: GraphBuilder, hidden: str, layout: TokenLayout) -> None:
        self.builder, self.layout, self.hidden = builder, layout, hidden
        self.grid_BSD = builder.add("Gather", [hidden, layout.slots])
        self.mask_BS1 = builder.add("Unsqueeze", [layout.pool_mask, builder.constant([-1])])

    def write(self, mode: Pooling) -> str:
        """Write one pooling, (B, D)."""
        return {
            "cls": self._first,
            "mean": lambda: self._mean(self.mask_BS1, root=False),
            "mean_sqrt_len": lambda: self._mean(self.mask_BS1, root=True),
            "weightedmean": lambda: self._mean(self._place_weights(), root=False),
            "max": self._max,
            "lasttoken": self._last,
        }[mode]()

    def _first(self) -> str:
        return self._pick(self.builder.add("ArgMax", [self.layout.pool_mask], axis=1, keepdims=1))

    def _mean(self, weights_BS1: str, *, root: bool) -> str:
        builder, places = self.builder, self.builder.constant([1])
        total = builder.add("ReduceSum", [builder.add("Mul", [self.grid_BSD, weights_BS1]), places], keepdims=0)
        count = builder.add("Max", [builder.add("ReduceSum", [weights_BS1, places], keepdims=0), builder.constant([1e-9], np.float32)])
        return builder.add("Div", [total, builder.add("Sqrt", [count]) if root else count])

    def _place_weights(self) -> str:
        builder = self.builder
        longest = builder.add("Gather", [builder.add("Shape", [self.layout.slots]), builder.constant(1)])
        places = builder.add("Range", [builder.constant(1), builder.add("Add", [longest, builder.constant(1)]), builder.constant(1)])
        counted_S1 = builder.add("Unsqueeze", [builder.add("Cast", [places], to=FLOAT), builder.constant([-1])])
        return builder.add("Mul", [self.mask_BS1, counted_S1])

    def _max(self) -> str:
        builder = self.builder
        hidden = builder.add(
            "Where", [builder.add("Cast", [self.mask_BS1], to=BOOL), self.grid_BSD, builder.constant(VERY_NEGATIVE, np.float32)]
        )
        highest = builder.add("ReduceMax", [hidden, builder.constant([1])], keepdims=0)
        return builder.add("Where", [builder.add("Cast", [self._any_token()], to=BOOL), highest, builder.constant(0, np.float32)])

    def _last(self) -> str:
        place = self.builder.add("ArgMax", [self.layout.pool_mask], axis=1, keepdims=1, select_last_index=1)
        return self.builder.add("Mul", [self._pick(place), self._any_token()])

    def _pick(self, place_B1: str) -> str:
        builder = self.builder
        rows = builder.add("Squeeze", [builder.add("GatherElements", [self.layout.slots, place_B1], axis=1), builder.constant([1])])
        return builder.add("Gather", [self.hidden, rows])

    def _any_token(self) -> str:
        return self.builder.add("ReduceMax", [self.mask_BS1, self.builder.constant([1])], keepdims=0)


def _write_dense(builder: GraphBuilder, x: str, module: DenseModule, name: str, width: int) -> str:
    weights = find_weights(module.folder)
    expected = (module.out_features, module.in_features)
    if "linear.weight" not in weights or weights.shape("linear.weight") != expected or module.in_features != width:
        raise FolderError(f"{module.folder}: expected linear.weight of shape {(module.out_features, width)} for vectors of width {width}")
    inputs = [x, builder.array(f"{name}.weight", weights.floats("linear.weight").T)]
    if module.bias:
        if "linear.bias" not in weights or weights.shape("linear.bias") != (module.out_features,):
            raise FolderError(f"{module.folder}: expected linear.bias of shape ({module.out_features},)")
        inputs.append(builder.array(f"{name}.bias", weights.floats("linear.bias")))
    y = write_activation(builder, builder.add("Gemm", inputs), module.activation)
    if not module.residual:
        return y
    if "residual.weight" in weights:
        if weights.shape("residual.weight") != expected:
            raise FolderError(f"{module.folder}: expected residual.weight of shape {expected}")
        x = builder.add("MatMul", [x, builder.array(f"{name}.residual", weights.floats("residual.weight").T)])
    return builder.add("Add", [y, x])


def _write_layer_norm(builder: GraphBuilder, x: str, module: LayerNormModule, name: str, width: int) -> str:
    weights = find_weights(module.folder)
    if any(part not in weights or weights.shape(part) != (width,) for part in ("norm.weight", "norm.bias")):
        raise FolderError(f"{module.folder}: expected norm.weight and norm.bias of shape ({width},)")
    arrays = [builder.array(f"{name}.{part}", weights.floats(part)) for part in ("norm.weight", "norm.bias")]
    return builder.add("LayerNormalization", [x, *arrays], axis=-1, epsilon=LAYER_NORM_EPSILON)
