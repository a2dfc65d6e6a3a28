"""Places on a plane: between 0 and 1, the same on every run, equal for equal rows."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.analyze import layout
from munjang.analyze.layout import find_principal_axes, lay_out
from munjang.errors import MissingExtra, UsageError


def rows(count: int = 60) -> np.ndarray:
    random = np.random.default_rng(1)
    centres = random.standard_normal((3, 12)) * 3
    return (centres[np.arange(count) % 3] + 0.3 * random.standard_normal((count, 12))).astype(np.float32)


@pytest.mark.parametrize("method", ["pca", "tsne", "auto"])
def test_a_layout_is_repeatable_and_keeps_neighbours(method):
    if method != "pca":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = rows()
    places = lay_out(given, layout=method)
    assert places.shape == (60, 2)
    assert places.dtype == np.float32
    assert places.min() >= 0
    assert places.max() <= 1
    assert lay_out(given, layout=method).tobytes() == places.tobytes()
    away = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(60) * 9
    assert ((away.argmin(axis=1) - np.arange(60)) % 3 == 0).mean() > 0.9


def test_principal_directions_are_those_of_sklearn():
    decomposition = pytest.importorskip("sklearn.decomposition", reason="scikit-learn is not installed")
    expected = decomposition.PCA(3).fit_transform(rows().astype(np.float64))
    np.testing.assert_allclose(np.abs(find_principal_axes(rows(), 3)), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("method", ["auto", "pca"])
def test_few_rows_have_places(count, method):
    places = lay_out(np.eye(4, dtype=np.float32)[:count], layout=method)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()


def test_equal_rows_lie_on_one_place():
    places = lay_out(np.ones((9, 3), dtype=np.float32))
    assert np.unique(places, axis=0).tolist() == [[0.5, 0.5]]


def test_what_is_missing_or_unknown_is_named(monkeypatch):
    with pytest.raises(UsageError, match="auto, pca, tsne, umap"):
        lay_out(rows(), layout="mds")  # type: ignore[arg-type]
    monkeypatch.setattr(layout, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="munjang\\[topics\\]"):
        lay_out(rows(), layout="tsne")
    with pytest.raises(UsageError, match="umap-learn"):
        lay_out(rows(), layout="umap")
    assert lay_out(rows()).tobytes() == lay_out(rows(), layout="pca").tobytes()
