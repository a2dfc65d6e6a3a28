"""A teacher with more dimensions than the student: the directions of its space that matter most.

PCA without centring: of all projections to K dimensions it keeps the most of the vectors' squared length, and so changes scalar products
the least. A student that learns the projected vectors keeps its own small dimension and needs no layer more at inference.

Shapes: N rows, D the teacher's dimensions, K the student's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from munjang.errors import InputError
from munjang.train.distill.cache import VectorBlocks, kept_array, open_array
from munjang.types import Vectors

ROWS = 65_536
"""Rows that the directions are computed from, evenly spaced."""


def principal_axes(rows_ND: Vectors, dimension: int) -> Vectors:
    """Return the K orthonormal directions that keep the most of the rows, shape (D, K), most important first, signs fixed."""
    if len(rows_ND) < dimension:
        raise InputError(
            f"{len(rows_ND):,} texts for the teacher, and its vectors are to be brought from {rows_ND.shape[1]} to {dimension} dimensions\n"
            f"  give {dimension} texts or more, or a student of the teacher's dimension (a dense layer)"
        )
    precise_ND = rows_ND.astype(np.float64)
    _, vectors_DD = np.linalg.eigh(precise_ND.T @ precise_ND)
    axes_DK = vectors_DD[:, ::-1][:, :dimension]
    largest_K = np.abs(axes_DK).argmax(axis=0)
    signs_K = np.sign(axes_DK[largest_K, np.arange(dimension)])
    return np.ascontiguousarray(axes_DK * signs_K, np.float32)


def kept_axes(blocks: VectorBlocks, dimension: int, folder: Path) -> Vectors:
    """Return the directions for these vectors, computed once and kept in the folder: a resumed run gets the same bits."""
    name = hashlib.sha256(f"axes {blocks.key} {dimension}".encode()).hexdigest()
    path = folder / f"{name}.npy"
    found = open_array(path, (blocks.dimension, dimension))
    return found if found is not None else kept_array(path, lambda: principal_axes(_sample(blocks), dimension))


def share_kept(rows_ND: Vectors, axes_DK: Vectors) -> float:
    """Return the share of the rows' squared length that the directions keep."""
    return float(np.square(rows_ND @ axes_DK).sum() / max(float(np.square(rows_ND).sum()), 1e-30))


def _sample(blocks: VectorBlocks) -> Vectors:
    return blocks.rows(np.unique(np.linspace(0, len(blocks) - 1, min(ROWS, len(blocks))).astype(np.int64)))
