"""Clusters are scikit-learn's, seeded, and odd collections get an answer or a clear message."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.analyze import clusters
from munjang.analyze.clusters import cluster, compute_silhouette
from munjang.analyze.keywords import find_cluster_phrases
from munjang.errors import MissingExtra, UsageError
from munjang.text.tagging import choose_tagger

sklearn_cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    random = np.random.default_rng(4)
    centres = random.standard_normal((6, 16))
    found = (centres[random.integers(0, 6, 240)] + 0.35 * random.standard_normal((240, 16))).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_kmeans_is_that_of_sklearn(rows):
    expected = sklearn_cluster.KMeans(n_clusters=5, n_init=10, random_state=3).fit_predict(rows)
    found = cluster(rows, k=5, seed=3)
    assert found.labels_N.tolist() == expected.tolist()
    assert cluster(rows, k=5, seed=3).labels_N.tolist() == expected.tolist()


def test_agglomerative_is_that_of_sklearn(rows):
    expected = sklearn_cluster.AgglomerativeClustering(n_clusters=5).fit_predict(rows)
    assert cluster(rows, method="agglomerative", k=5).labels_N.tolist() == expected.tolist()
    by_distance = sklearn_cluster.AgglomerativeClustering(n_clusters=None, metric="cosine", linkage="average", distance_threshold=0.4)
    assert cluster(rows, method="agglomerative", threshold=0.6).labels_N.tolist() == by_distance.fit_predict(rows).tolist()


def test_hdbscan_is_that_of_sklearn(rows):
    expected = sklearn_cluster.HDBSCAN(min_cluster_size=8, copy=True).fit_predict(rows)
    found = cluster(rows, method="hdbscan", min_size=8)
    assert found.labels_N.tolist() == expected.tolist()
    assert found.outliers == int((expected < 0).sum())
    assert sum(found.sizes.values()) + found.outliers == len(rows)


def test_without_k_the_best_silhouette_decides(rows):
    assert len(cluster(rows).sizes) == 6


def test_the_silhouette_is_that_of_sklearn_over_rows_in_clusters(rows):
    from sklearn.metrics import silhouette_score

    labels = np.arange(len(rows)) % 3
    labels[:40] = -1
    assert compute_silhouette(rows, labels) == pytest.approx(float(silhouette_score(rows[40:], labels[40:], metric="cosine")))
    assert compute_silhouette(rows, np.zeros(len(rows), dtype=np.int64)) is None


@pytest.mark.parametrize("method", ["kmeans", "agglomerative", "communities", "hdbscan"])
@pytest.mark.parametrize("count", [0, 1, 2, 30], ids=["none", "one", "two", "all equal"])
def test_odd_collections_have_an_answer(method, count):
    found = cluster(np.ones((count, 4), dtype=np.float32), method=method, min_size=2)
    assert len(found.labels_N) == count
    assert len(found.sizes) <= 1
    assert found.silhouette is None


def test_more_clusters_than_different_rows_are_as_many_as_there_are():
    assert sorted(cluster([[1.0, 0], [1, 0], [0, 1]], k=3).sizes.values()) == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 9}, "1 to 3"),
        ({"method": "hdbscan", "k": 2}, "takes no k"),
        ({"method": "hdbscan", "min_size": 1}, "at least 2"),
        ({"method": "birch"}, "expected one of kmeans"),
    ],
    ids=["k", "k for hdbscan", "min size", "method"],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        cluster(np.eye(3), **options)


def test_too_many_rows_for_joining_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MAX_AGGLOMERATIVE", 2)
    with pytest.raises(UsageError, match="use kmeans or communities"):
        cluster(np.eye(3), method="agglomerative", k=2)


def test_without_sklearn_the_extra_is_named_and_communities_work(monkeypatch):
    monkeypatch.setattr(clusters, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="munjang\\[topics\\]"):
        cluster(np.eye(3))
    assert cluster(np.ones((3, 2)), method="communities", min_size=2).labels_N.tolist() == [0, 0, 0]


def test_a_cluster_is_named_by_what_others_do_not_say():
    texts = ["Heavy rain in Seoul", "The rain in Seoul", "A goal in Seoul", "the goal", "nothing"]
    found = find_cluster_phrases(texts, [0, 0, 1, 1, -1], phrases=2, by=choose_tagger("plain"))
    assert found[0][0] == "rain"
    assert found[1][0] == "goal"
    assert set(found) == {0, 1}
    assert find_cluster_phrases([], []) == {}
    with pytest.raises(UsageError, match="2 for 1"):
        find_cluster_phrases(["a"], [0, 1])


def test_samples_of_large_collections_tell_what_all_of_it_does(rows, monkeypatch):
    labels = cluster(rows, k=6).labels_N
    whole = compute_silhouette(rows, labels)
    monkeypatch.setattr(clusters, "SILHOUETTE_ROWS", len(rows) // 2)
    monkeypatch.setattr(clusters, "TRIED_ROWS", len(rows) // 2)
    sampled = compute_silhouette(rows, labels)
    assert sampled == pytest.approx(whole, abs=0.1)
    assert sampled == compute_silhouette(rows, labels) != whole
    assert len(cluster(rows).sizes) == 6
