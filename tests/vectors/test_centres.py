from __future__ import annotations

import numpy as np
import pytest

from munjang.vectors.centres import find_centres, find_nearest_centre
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
    assert np.array_equal(find_nearest_centre(rows, centres), (rows @ centres.T).argmax(axis=1))


def test_they_explain_the_rows_about_as_well_as_scikit_learns() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    rows = clustered(2000, 40, 2)
    ours = (rows @ find_centres(rows, 60).T).max(axis=1).mean()
    theirs = cluster.KMeans(60, n_init=1, max_iter=8, random_state=0, init="random").fit(rows).cluster_centers_
    assert ours > (rows @ normalize(theirs).T).max(axis=1).mean() - 0.03


def test_more_centres_than_rows_are_as_many_as_rows() -> None:
    assert find_centres(clustered(5, 2, 0), 9).shape == (5, 24)


def lloyd(rows: np.ndarray, count: int, *, steps: int, seed: int) -> np.ndarray:
    """Spherical k-means as a book has it, a centre at a time; draws from the random numbers as find_centres does."""
    random = np.random.default_rng(seed)
    centres = rows[random.choice(len(rows), count, replace=False)]
    for _ in range(steps):
        nearest = (rows @ centres.T).argmax(axis=1)
        centres = rows[random.integers(0, len(rows), count)]
        for centre in range(count):
            if (nearest == centre).any():
                centres[centre] = rows[nearest == centre].sum(axis=0)
        centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return centres


@pytest.mark.parametrize("options", [{"steps": 1, "seed": 5}, {"steps": 3, "seed": 0}], ids=str)
def test_each_step_is_one_of_lloyds(options: dict[str, int]) -> None:
    rows = clustered(300, 8, 4)
    np.testing.assert_allclose(find_centres(rows, 12, **options), lloyd(rows, 12, **options), atol=1e-5)


def test_a_centre_without_vectors_begins_anew_at_one_of_the_vectors() -> None:
    rows = clustered(300, 8, 4)[np.random.default_rng(1).integers(0, 4, 300)]  # four distinct rows, twelve centres
    centres = find_centres(rows, 12, steps=1, seed=5)
    np.testing.assert_allclose(centres, lloyd(rows, 12, steps=1, seed=5), atol=1e-5)
    np.testing.assert_allclose((centres @ rows.T).max(axis=1), 1, atol=1e-5)


def test_by_default_it_takes_eight_steps_from_seed_zero() -> None:
    rows = normalize(np.random.default_rng(4).standard_normal((2000, 24)))  # without clusters, so that every step still moves something
    assert np.array_equal(find_centres(rows, 12), find_centres(rows, 12, steps=8, seed=0))
    for steps in (1, 7, 9):
        assert not np.array_equal(find_centres(rows, 12, steps=steps), find_centres(rows, 12))
    assert not np.array_equal(find_centres(rows, 12, seed=1), find_centres(rows, 12))
