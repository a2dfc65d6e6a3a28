from __future__ import annotations

import numpy as np
import pytest

from munjang.vectors.centres import find_centres, nearest_centre
from munjang.vectors.similarity import normalize


def clustered(n: int, clusters: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return normalize(random.standard_normal((clusters, 24))[random.integers(0, clusters, n)] + random.standard_normal((n, 24)) * 0.2)


def test_centres_have_unit_length_and_the_same_seed_gives_the_same() -> None:
    rows = clustered(500, 8, 0)
    centres = find_centres(rows, 20, seed=3)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, atol=1e-5)
    assert np.array_equal(centres, find_centres(rows, 20, seed=3))


def test_each_row_goes_to_the_centre_with_the_largest_cosine() -> None:
    rows = clustered(5000, 8, 1)
    centres = find_centres(rows, 30)
    assert np.array_equal(nearest_centre(rows, centres), (rows @ centres.T).argmax(axis=1))


def test_they_explain_the_rows_about_as_well_as_scikit_learns() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    rows = clustered(2000, 40, 2)
    ours = (rows @ find_centres(rows, 60).T).max(axis=1).mean()
    theirs = cluster.KMeans(60, n_init=1, max_iter=8, random_state=0, init="random").fit(rows).cluster_centers_
    assert ours > (rows @ normalize(theirs).T).max(axis=1).mean() - 0.03


def test_more_centres_than_rows_are_as_many_as_rows() -> None:
    assert find_centres(clustered(5, 2, 0), 9).shape == (5, 24)
