"""Hidden states → one vector per text, inside the graph: pooling, then whatever the folder puts after it.

Padding never leaks: only places with pool_mask 1 count, and a text without any pools to zeros, not NaN.

Shapes: B texts, S places, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.engine.layout import TokenLayout
from munjang.engine.modules import DenseModule, LayerNormModule, Module, NormalizeModule, PoolingModule
from munjang.engine.norm_graph import write_activation
from munjang.engine.onnxgraph import BOOL, FLOAT, GraphBuilder
from munjang.engine.weights import find_weights
from munjang.errors import FolderError
from munjang.types import Pooling

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


def write_head(pen: GraphBuilder, hidden: str, layout: TokenLayout | None, modules: Sequence[Module], width: int) -> str:
    """Write the modules after the encoder, whose token vectors have `width` numbers; return the output.

    Without a layout, `hidden` is pooled already.
    """
    x = hidden
    for number, module in enumerate(modules):
        if isinstance(module, PoolingModule) and layout is not None:
            x = _write_pooling(pen, hidden, layout, module)
        elif isinstance(module, DenseModule):
            x = _write_dense(pen, x, module, f"dense{number}", compute_head_width(modules[:number], width))
        elif isinstance(module, LayerNormModule):
            x = _write_layer_norm(pen, x, module, f"norm{number}", compute_head_width(modules[:number], width))
        elif isinstance(module, NormalizeModule):
            x = write_normalize(pen, x)
    return x


def write_normalize(pen: GraphBuilder, x: str) -> str:
    """Scale rows to length one; a zero row stays zero."""
    length = pen.add("ReduceL2", [x, pen.constant([-1])], keepdims=1)
    return pen.add("Div", [x, pen.add("Max", [length, pen.constant([1e-12], np.float32)])])


def _write_pooling(pen: GraphBuilder, hidden: str, layout: TokenLayout, module: PoolingModule) -> str:
    if _is_first_token(module):
        return hidden  # the encoder gave the first tokens only
    pool = _PoolingWriter(pen, hidden, layout)
    parts = [pool.write(mode) for mode in module.modes]
    return parts[0] if len(parts) == 1 else pen.add("Concat", parts, axis=-1)


def write_pooling(pen: GraphBuilder, hidden: str, layout: TokenLayout, mode: Pooling) -> str:
    """Pool the token vectors of each text."""
    return _PoolingWriter(pen, hidden, layout).write(mode)


class _PoolingWriter:
    """Writes poolings of one hidden state; what they share is written once."""

    def __init__(self, pen: GraphBuilder, hidden: str, layout: TokenLayout) -> None:
        self.pen, self.layout, self.hidden = pen, layout, hidden
        self.grid_BSD = pen.add("Gather", [hidden, layout.slots])
        self.mask_BS1 = pen.add("Unsqueeze", [layout.pool_mask, pen.constant([-1])])

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
        return self._pick(self.pen.add("ArgMax", [self.layout.pool_mask], axis=1, keepdims=1))

    def _mean(self, weights_BS1: str, *, root: bool) -> str:
        pen, places = self.pen, self.pen.constant([1])
        total = pen.add("ReduceSum", [pen.add("Mul", [self.grid_BSD, weights_BS1]), places], keepdims=0)
        count = pen.add("Max", [pen.add("ReduceSum", [weights_BS1, places], keepdims=0), pen.constant([1e-9], np.float32)])
        return pen.add("Div", [total, pen.add("Sqrt", [count]) if root else count])

    def _place_weights(self) -> str:
        pen = self.pen
        longest = pen.add("Gather", [pen.add("Shape", [self.layout.slots]), pen.constant(1)])
        places = pen.add("Range", [pen.constant(1), pen.add("Add", [longest, pen.constant(1)]), pen.constant(1)])
        counted_S1 = pen.add("Unsqueeze", [pen.add("Cast", [places], to=FLOAT), pen.constant([-1])])
        return pen.add("Mul", [self.mask_BS1, counted_S1])

    def _max(self) -> str:
        pen = self.pen
        hidden = pen.add("Where", [pen.add("Cast", [self.mask_BS1], to=BOOL), self.grid_BSD, pen.constant(VERY_NEGATIVE, np.float32)])
        highest = pen.add("ReduceMax", [hidden, pen.constant([1])], keepdims=0)
        return pen.add("Where", [pen.add("Cast", [self._any_token()], to=BOOL), highest, pen.constant(0, np.float32)])

    def _last(self) -> str:
        place = self.pen.add("ArgMax", [self.layout.pool_mask], axis=1, keepdims=1, select_last_index=1)
        return self.pen.add("Mul", [self._pick(place), self._any_token()])

    def _pick(self, place_B1: str) -> str:
        pen = self.pen
        rows = pen.add("Squeeze", [pen.add("GatherElements", [self.layout.slots, place_B1], axis=1), pen.constant([1])])
        return pen.add("Gather", [self.hidden, rows])

    def _any_token(self) -> str:
        return self.pen.add("ReduceMax", [self.mask_BS1, self.pen.constant([1])], keepdims=0)


def _write_dense(pen: GraphBuilder, x: str, module: DenseModule, name: str, width: int) -> str:
    weights = find_weights(module.folder)
    expected = (module.out_features, module.in_features)
    if "linear.weight" not in weights or weights.shape("linear.weight") != expected or module.in_features != width:
        raise FolderError(f"{module.folder}: expected linear.weight of shape {(module.out_features, width)} for vectors of width {width}")
    inputs = [x, pen.array(f"{name}.weight", weights.floats("linear.weight").T)]
    if module.bias:
        if "linear.bias" not in weights or weights.shape("linear.bias") != (module.out_features,):
            raise FolderError(f"{module.folder}: expected linear.bias of shape ({module.out_features},)")
        inputs.append(pen.array(f"{name}.bias", weights.floats("linear.bias")))
    y = write_activation(pen, pen.add("Gemm", inputs), module.activation)
    if not module.residual:
        return y
    if "residual.weight" in weights:
        if weights.shape("residual.weight") != expected:
            raise FolderError(f"{module.folder}: expected residual.weight of shape {expected}")
        x = pen.add("MatMul", [x, pen.array(f"{name}.residual", weights.floats("residual.weight").T)])
    return pen.add("Add", [y, x])


def _write_layer_norm(pen: GraphBuilder, x: str, module: LayerNormModule, name: str, width: int) -> str:
    weights = find_weights(module.folder)
    if any(part not in weights or weights.shape(part) != (width,) for part in ("norm.weight", "norm.bias")):
        raise FolderError(f"{module.folder}: expected norm.weight and norm.bias of shape ({width},)")
    arrays = [pen.array(f"{name}.{part}", weights.floats(part)) for part in ("norm.weight", "norm.bias")]
    return pen.add("LayerNormalization", [x, *arrays], axis=-1, epsilon=LAYER_NORM_EPSILON)
