"""A model folder and texts → the same model with shorter vectors, through a Dense module at its end.

The Dense projects onto the principal directions of the texts' own vectors. They are taken without subtracting the mean first: so cosines
stay as near to what they were as vectors of this length allow, and thresholds keep their meaning. With `center` it is textbook PCA, which
moves all cosines. A model whose vectors have length one gets a second Normalize.

Shapes: N texts, D old dimensions, E new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from munjang.engine.modules import DenseModule, NormalizeModule
from munjang.engine.weights import SINGLE
from munjang.errors import UsageError
from munjang.models.compress.parts import ModelParts, read_parts, save_tensors, write_parts
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.validate_texts import validate_texts
from munjang.types import Vectors

FITTED = 10_000
"""Texts that directions are taken from, spread over all that are given; more hardly move them."""


@dataclass(frozen=True)
class Projection:
    """y = weight @ x + bias."""

    weight_ED: Vectors
    bias_E: Vectors
    kept: float
    """The share of the vectors' squared length (of their variance, when centred) that is left."""


def fit_projection(vectors_ND: Vectors, *, dimension: int, center: bool = False) -> Projection:
    """Return the projection onto the `dimension` directions in which the vectors are longest (vary most, when centred)."""
    count, width = vectors_ND.shape
    if not 1 <= dimension < width:
        raise UsageError(f"dimension={dimension}, expected 1 to {width - 1}: the model's vectors have {width}")
    if count < dimension:
        raise UsageError(f"{count:,} texts for {dimension} dimensions, expected at least as many texts as dimensions")
    wide_ND = vectors_ND.astype(np.float64)
    mean_D = wide_ND.mean(axis=0) if center else np.zeros(width)
    spread_DD = (wide_ND - mean_D).T @ (wide_ND - mean_D)
    sizes_D, directions_DD = np.linalg.eigh(spread_DD)
    weight_ED = directions_DD[:, ::-1].T[:dimension]
    # a direction has no sign of its own; its largest number is made positive so that equal vectors give an equal model
    largest_E = np.take_along_axis(weight_ED, np.abs(weight_ED).argmax(axis=1)[:, None], axis=1)
    weight_ED = weight_ED * np.where(largest_E < 0, -1, 1)
    kept = float(sizes_D[::-1][:dimension].sum() / max(sizes_D.sum(), 1e-30))
    return Projection(weight_ED.astype(np.float32), (-weight_ED @ mean_D).astype(np.float32), kept)


def reduce_dimension(folder: Path, target: Path, texts: Sequence[str], *, dimension: int, center: bool = False) -> float:
    """Write `folder`'s model to `target` with shorter vectors; return the share of their squared length that is left."""
    texts, parts = validate_texts(texts), read_parts(folder)
    projection = fit_projection(sample_vectors(SentenceEncoder.load(folder), texts), dimension=dimension, center=center)
    with with_projection(parts, projection) as shorter:
        write_parts(shorter, target)
    return projection.kept


def sample_vectors(model: SentenceEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts, or of FITTED of them, at the model's full length."""
    step = -(-len(texts) // FITTED) or 1
    return model.encode_with_report(texts[::step], dimensions=model.engine.dimension).vectors


@contextmanager
def with_projection(parts: ModelParts, projection: Projection) -> Iterator[ModelParts]:
    """Yield the parts with the projection as a Dense at the end; its weights are on disk meanwhile, to be copied."""
    out, width = projection.weight_ED.shape
    has_bias = bool(projection.bias_E.any())
    with TemporaryDirectory(prefix="munjang-") as place:
        tensors = {"linear.weight": projection.weight_ED} | ({"linear.bias": projection.bias_E} if has_bias else {})
        save_tensors(tensors, Path(place) / SINGLE, half=False)
        dense = DenseModule(folder=Path(place), in_features=width, out_features=out, bias=has_bias, activation="identity")
        last = parts.folder.modules[-1]
        again = (NormalizeModule(),) if isinstance(last, NormalizeModule) or getattr(last, "normalize", False) else ()
        whole = replace(parts, folder=replace(parts.folder, truncate_dimension=None))
        yield whole.with_modules((*parts.folder.modules, dense, *again))
