"""The outputs of an encoder's last layers → one row per token: their mean, weighted by learned weights (`WeightedLayerPooling`).

Shapes: L layers, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.engine.encoder_graph import EncoderOutput
from munjang.engine.modules import LayerMixModule, Module
from munjang.engine.onnxgraph import GraphBuilder
from munjang.engine.weights import find_weights
from munjang.errors import FolderError


def write_layer_mix(pen: GraphBuilder, out: EncoderOutput, modules: Sequence[Module]) -> str:
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
    parts = [pen.add("Mul", [layer, pen.constant(share, np.float32)]) for layer, share in zip(chosen, shares_L / total, strict=True)]
    return parts[0] if len(parts) == 1 else pen.add("Sum", parts)
