"""The head of a siamese classifier: two sentence vectors → logits, W [u; v; |u−v|] + b; and its folder on disk.

The folder `pair_classifier` stands inside that of the sentence encoder that the head was trained with: a JSON file with labels, parts and
the encoder's fingerprint, and a safetensors file with weight and bias. Every size is checked before it is trusted; no code is loaded.

Shapes: N pairs, D dimensions, K labels, F features (D for each part).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from munjang.engine.folder import PAIR_CLASSIFIER_FILE
from munjang.engine.jsonfile import read_object
from munjang.engine.read_module import is_size
from munjang.engine.weights import Weights
from munjang.engine.write_folder import write_json
from munjang.errors import FolderError, quote
from munjang.types import Floats, Vectors
from munjang.wording import count

Part: TypeAlias = Literal["u", "v", "|u-v|", "u*v"]
PARTS: tuple[Part, ...] = get_args(Part)
"""What a head can see of two vectors, in the order in which the features stand."""

WEIGHTS_FILE = "head.safetensors"
FORMAT = "munjang-pair-classifier-1"
MAX_LABELS = 100_000


@dataclass(frozen=True)
class PairHead:
    """A linear classifier over two vectors."""

    labels: tuple[str, ...]
    parts: tuple[Part, ...]
    weight_KF: Floats
    bias_K: Floats
    encoder: str
    """The fingerprint of the folder of the encoder that it was trained with."""

    @property
    def dimension(self) -> int:
        """The number of dimensions of the vectors that it reads."""
        return int(self.weight_KF.shape[1]) // len(self.parts)

    def logits(self, u_ND: Floats, v_ND: Floats) -> Vectors:
        """Return one row of logits per pair of vectors."""
        logits_NK = np.broadcast_to(self.bias_K, (len(u_ND), len(self.labels))).astype(np.float32)
        for part, weight_KD in zip(self.parts, np.split(self.weight_KF, len(self.parts), axis=1), strict=True):
            logits_NK += _take_part(part, u_ND, v_ND) @ weight_KD.T
        return logits_NK


def _take_part(part: Part, u_ND: Floats, v_ND: Floats) -> Floats:
    if part == "u":
        return u_ND
    if part == "v":
        return v_ND
    return np.abs(u_ND - v_ND) if part == "|u-v|" else u_ND * v_ND


def write_pair_head(head: PairHead, folder: Path) -> None:
    """Write a head into `folder`, which is made; whoever calls makes it appear whole."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    arrays = {"weight": head.weight_KF, "bias": head.bias_K}
    save_file({name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}, folder / WEIGHTS_FILE)
    settings = {
        "format": FORMAT,
        "labels": list(head.labels),
        "parts": list(head.parts),
        "dimension": head.dimension,
        "encoder": head.encoder,
    }
    write_json(folder / PAIR_CLASSIFIER_FILE, settings)


def read_pair_head(folder: Path) -> PairHead:
    """Return the head in a folder; anything that does not fit is refused."""
    file = folder / PAIR_CLASSIFIER_FILE
    settings = read_object(file)
    if settings.get("format") != FORMAT:
        raise FolderError(f"{file}: the format is {quote(str(settings.get('format')))}, expected {FORMAT!r}")
    labels, parts = _read_labels(file, settings), _read_parts(file, settings)
    dimension, encoder = settings.get("dimension"), settings.get("encoder")
    if not is_size(dimension):
        raise FolderError(f"{file}: 'dimension' is {quote(str(dimension))}, expected a positive whole number")
    if not isinstance(encoder, str) or not encoder:
        raise FolderError(f"{file}: 'encoder' is {quote(str(encoder))}, expected the fingerprint of a sentence encoder")
    weight_KF, bias_K = _read_weights(folder, (len(labels), len(parts) * dimension))
    return PairHead(labels, parts, weight_KF, bias_K, encoder)


def _read_labels(file: Path, settings: dict[str, Any]) -> tuple[str, ...]:
    labels = settings.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) and label.strip() for label in labels):
        raise FolderError(f"{file}: 'labels' is not a list of names")
    if not 2 <= len(labels) <= MAX_LABELS or len(set(labels)) != len(labels):
        raise FolderError(f"{file}: 'labels' has {count(len(labels), 'name')}, expected 2 to {MAX_LABELS:,} that differ")
    return tuple(labels)


def _read_parts(file: Path, settings: dict[str, Any]) -> tuple[Part, ...]:
    names = settings.get("parts")
    parts = tuple(part for part in PARTS if isinstance(names, list) and part in names)
    if not parts or list(parts) != names:
        raise FolderError(f"{file}: 'parts' is {quote(str(names))}, expected some of {', '.join(PARTS)}, in this order")
    return parts


def _read_weights(folder: Path, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise FolderError(f"{folder}: no {WEIGHTS_FILE} found\n  train the classifier again with keep_head = true")
    weights = Weights([path])
    shapes = {name: weights.shape(name) for name in weights}
    expected = {"weight": shape, "bias": shape[:1]}
    if shapes != expected:
        seen = ", ".join(f"{quote(name, 30)} {size}" for name, size in list(shapes.items())[:4]) or "nothing"
        raise FolderError(f"{path}: holds {seen}, expected weight {shape} and bias {shape[:1]}")
    return weights.floats("weight"), weights.floats("bias")
