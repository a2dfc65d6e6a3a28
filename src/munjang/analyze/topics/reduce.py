"""Vectors → the few directions in which they differ most (principal components), as unit rows.

The directions come from the covariance in float64 and have a fixed sign, so that equal vectors give an equal projection on every run.
Rows are scaled to length one before and after: what counts is direction, and a text that lies exactly in the middle is a row of zeros.

Shapes: N rows, D dimensions, R reduced dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.types import Vectors
from munjang.vectors.similarity import prepared

_NOTHING = 1e-9  # a share of the variance below which a direction is rounding error
_MIDDLE = 1e-5  # a row this near to the mean has no direction of its own


@dataclass(frozen=True)
class Projection:
    """The mean of the unit vectors, and the directions kept."""

    mean_D: Vectors
    axes_DR: Vectors

    def apply(self, vectors_ND: Vectors) -> Vectors:
        """Return unit rows in the reduced space."""
        centred_ND: Vectors = prepared(np.ascontiguousarray(vectors_ND, dtype=np.float32), "cosine") - self.mean_D
        reduced_NR: Vectors = centred_ND @ self.axes_DR
        return unit_rows(reduced_NR)


def fit_projection(vectors_ND: Vectors, dimensions: int | None) -> Projection:
    """Return the projection onto the strongest directions; None keeps every direction there is."""
    unit_ND = prepared(vectors_ND, "cosine").astype(np.float64)
    mean_D = unit_ND.mean(axis=0)
    unit_ND -= mean_D
    values, axes_DD = np.linalg.eigh(unit_ND.T @ unit_ND)
    order = np.argsort(-values, kind="stable")
    kept = order[values[order] > max(_NOTHING * float(values.sum()), 1e-12)][:dimensions]
    axes_DR = axes_DD[:, kept]
    if axes_DR.shape[1]:
        axes_DR = axes_DR * np.where(axes_DR[np.abs(axes_DR).argmax(axis=0), np.arange(len(kept))] < 0, -1.0, 1.0)
    return Projection(mean_D.astype(np.float32), np.ascontiguousarray(axes_DR, dtype=np.float32))


def unit_rows(rows_NR: Vectors) -> Vectors:
    """Return rows of length one; rows next to zero become zeros."""
    length_N1 = np.linalg.norm(rows_NR, axis=1, keepdims=True)
    scaled_NR: Vectors = np.where(length_N1 > _MIDDLE, rows_NR / np.maximum(length_N1, _MIDDLE), 0).astype(np.float32)
    return scaled_NR
