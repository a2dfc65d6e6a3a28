"""Fewer layers: a backbone keeps some of its layers and forgets the others, as the start of a smaller student.

In: a Hugging Face encoder of a family that `packed_parts` knows. Layers spread evenly keep more than the first ones do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from munjang.errors import UsageError


def keep_layers(backbone: Any, layers: Sequence[int]) -> None:
    """Keep only these layers, counted from 0, in rising order; the backbone's configuration is changed with it."""
    home = _home(backbone)
    count = len(home.layer)
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0 or layers[-1] >= count:
        listed = ", ".join(map(str, layers))
        raise UsageError(f"layers {listed}: the model has {count} layers, expected numbers from 0 to {count - 1} in rising order")
    home.layer = nn.ModuleList([home.layer[number] for number in layers])
    name = "n_layers" if hasattr(backbone.config, "n_layers") else "num_hidden_layers"
    setattr(backbone.config, name, len(layers))


def _home(backbone: Any) -> Any:
    """Return the module that holds the layers."""
    for name in ("encoder", "transformer"):
        home = getattr(backbone, name, None)
        if home is not None and isinstance(getattr(home, "layer", None), nn.ModuleList):
            return home
    raise UsageError(f"layers: a {backbone.config.model_type} model does not keep its layers where they can be chosen from")
