"""A model folder → the same model with some of its layers only.

The kept layers are renumbered from 0. What comes out computes less and knows less; `munjang distill` teaches it the whole model's vectors
again. Layers spread over the whole depth start better than the first ones do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from munjang.engine.families import FAMILIES
from munjang.engine.modules import TransformerModule
from munjang.errors import FolderError, UsageError, shown
from munjang.models.compress.parts import ModelParts, read_parts, write_parts


def keep_layers(folder: Path, target: Path, *, layers: Sequence[int]) -> None:
    """Write `folder`'s model to `target` with these layers, counted from 0, in rising order."""
    write_parts(keep_layers_of(read_parts(folder), layers), target)


def keep_layers_of(parts: ModelParts, layers: Sequence[int]) -> ModelParts:
    """Return the parts with these layers only."""
    base = parts.base
    if not isinstance(base, TransformerModule):
        raise UsageError(f"{parts.folder.path}: a static model has no layers to choose from")
    family = str(base.config.get("model_type"))
    if family not in FAMILIES:
        raise FolderError(f"{base.folder / 'config.json'}: model_type {shown(family)} is unknown; known are {', '.join(FAMILIES)}")
    names = FAMILIES[family]
    count_name = names.layers_key
    count = int(base.config[count_name])
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0 or layers[-1] >= count:
        listed = ", ".join(map(str, layers))
        raise UsageError(f"layers {listed}: the model has {count} layers, expected numbers from 0 to {count - 1} in rising order")
    tensors = _renumbered(parts.tensors, names.layer, {old: new for new, old in enumerate(layers)})
    return replace(parts, tensors=tensors).with_config({**base.config, count_name: len(layers)})


def spread_layers(count: int, wanted: int) -> list[int]:
    """Return `wanted` layers of `count`, evenly spread, the first and the last among them.

    >>> spread_layers(12, 6)
    [0, 2, 4, 7, 9, 11]
    """
    if not 1 <= wanted <= count:
        raise UsageError(f"{wanted} layers of {count}, expected 1 to {count}")
    return [count - 1] if wanted == 1 else [round(place * (count - 1) / (wanted - 1)) for place in range(wanted)]


def _renumbered(tensors: Mapping[str, NDArray[Any]], pattern: str, new_number: Mapping[int, int]) -> dict[str, NDArray[Any]]:
    """Drop the tensors of layers without a new number, and rename those of the others."""
    before, after = pattern.split("{}")
    layer = re.compile(rf"((?:^|.*\.){re.escape(before)})(\d+)({re.escape(after)}.*)")
    kept: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors.items():
        found = layer.fullmatch(name)
        if found is None:
            kept[name] = tensor
        elif int(found[2]) in new_number:
            kept[f"{found[1]}{new_number[int(found[2])]}{found[3]}"] = tensor
    return kept
