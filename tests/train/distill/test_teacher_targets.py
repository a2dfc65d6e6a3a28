"""Projection of a wider teacher: orthonormal directions, the same as scikit-learn's, the best that there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.train.distill.cache import VectorBlocks
from munjang.train.distill.teacher_targets import find_principal_axes, load_axes, share_kept


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    chance = np.random.default_rng(5)
    return (chance.normal(size=(200, 12)) * np.linspace(3, 0.1, 12) @ np.linalg.qr(chance.normal(size=(12, 12)))[0]).astype(np.float32)


def test_directions_are_orthonormal_and_keep_the_most(rows: np.ndarray) -> None:
    axes = find_principal_axes(rows, 5)
    assert np.allclose(axes.T @ axes, np.eye(5), atol=1e-5)
    best = share_kept(rows, axes)
    chance = np.random.default_rng(1)
    others = [np.linalg.qr(chance.normal(size=(12, 5)))[0].astype(np.float32) for _ in range(20)]
    assert best > max(share_kept(rows, other) for other in others)
    assert share_kept(rows, find_principal_axes(rows, 12)) == pytest.approx(1, abs=1e-5)


def test_directions_are_those_of_scikit_learn(rows: np.ndarray) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition", reason="the authority scikit-learn is not installed")
    found = decomposition.TruncatedSVD(5, algorithm="arpack", random_state=0).fit(rows.astype(np.float64)).components_
    assert np.allclose(np.abs((find_principal_axes(rows, 5) * found.T).sum(axis=0)), 1, atol=1e-4)


def test_too_few_texts_for_the_dimensions_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(InputError, match="give 5 texts or more"):
        find_principal_axes(rows[:4], 5)


def test_directions_are_kept_and_computed_again_when_damaged(rows: np.ndarray, tmp_path: Path) -> None:
    blocks = VectorBlocks((rows,), 200, "key")
    first = np.array(load_axes(blocks, 5, tmp_path))
    path = next(tmp_path.glob("*.npy"))
    path.write_bytes(path.read_bytes()[:-1])
    assert np.array_equal(load_axes(blocks, 5, tmp_path), first)
    assert load_axes(blocks, 4, tmp_path).shape == (12, 4)
