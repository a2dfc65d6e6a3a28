"""Vectors → clusters, by one of four methods, and how well they are apart.

    kmeans          k round clusters; without k, the k of the best silhouette
    agglomerative   k clusters, or all that stay apart at a threshold, by joining the nearest
    communities     dense groups within a threshold of a centre; the rest belongs to none (`communities`)
    hdbscan         groups of any shape where rows lie dense; the rest belongs to none

k-means, agglomerative clustering and HDBSCAN are scikit-learn's (extra `topics`), on the vectors as they are handed in, with a seed, so
their labels are scikit-learn's own. −1 is no cluster. Names for clusters are left to `cluster_names`.

Shapes: N rows, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.communities import communities, labels_of
from munjang.errors import MissingExtra, UsageError, shown
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import as_rows
from munjang.wording import count, name_facts

Method: TypeAlias = Literal["kmeans", "agglomerative", "communities", "hdbscan"]

MAX_AGGLOMERATIVE = 20_000
"""Rows that are joined step by step; all pairs of them are held at once."""
SILHOUETTE_ROWS = 5_000
"""Rows by which a silhouette is estimated when there are more."""
TRIED = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The k that are tried when none is given."""
TRIED_ROWS = 2_000


@dataclass(frozen=True)
class ClusterOptions:
    """How rows are put together."""

    method: Method = "kmeans"
    k: int | None = None
    """For kmeans and agglomerative: how many clusters."""
    threshold: float = 0.75
    """For communities, and for agglomerative without k: the least cosine within a cluster."""
    min_size: int = 10
    """For communities and hdbscan: the fewest rows of a cluster."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a threshold that is no cosine where one is used, before anything is encoded."""
        used = self.method == "communities" or (self.method == "agglomerative" and self.k is None)
        if used and not -1 <= self.threshold <= 1:
            raise UsageError(f"the threshold is {self.threshold:g}, expected a cosine from -1 to 1")


@dataclass(frozen=True)
class Clustering:
    """The cluster of each row, −1 for none, and the silhouette (−1 to 1), if there is one."""

    labels_N: Ints
    silhouette: float | None

    def __repr__(self) -> str:
        made = [count(len(self.sizes), "cluster"), count(len(self.labels_N), "row"), f"{self.outliers:,} without a cluster"]
        return name_facts("Clustering", made if self.silhouette is None else [*made, f"silhouette {self.silhouette:.3f}"])

    @property
    def sizes(self) -> dict[int, int]:
        """How many rows each cluster has, the largest first; −1 is not among them."""
        numbers, counts = np.unique(self.labels_N[self.labels_N >= 0], return_counts=True)
        order = np.lexsort((numbers, -counts))
        return {int(numbers[at]): int(counts[at]) for at in order}

    @property
    def outliers(self) -> int:
        """How many rows belong to no cluster."""
        return int((self.labels_N < 0).sum())


def cluster(vectors: ArrayLike, options: ClusterOptions | None = None) -> Clustering:
    """Return the clusters of the rows.

    >>> found = cluster([[1, 0], [0, 1], [1, 0.1]], ClusterOptions("communities", threshold=0.9, min_size=2))
    >>> found.labels_N.tolist()
    [0, -1, 0]
    """
    chosen = options or ClusterOptions()
    rows_ND = as_rows(vectors, "vectors")
    if chosen.method not in get_args(Method):
        raise UsageError(f"the method {shown(str(chosen.method))} is unknown, expected one of {', '.join(get_args(Method))}")
    if not rows_ND.size:
        return Clustering(np.empty(0, dtype=np.int64), None)
    if chosen.method != "communities":
        need_sklearn("clustering")
    _check(len(rows_ND), chosen)
    labels_N = _METHODS[chosen.method](rows_ND, chosen)
    return Clustering(labels_N, silhouette(rows_ND, labels_N, seed=chosen.seed))


def silhouette(rows_ND: Vectors, labels_N: Ints, *, seed: int = 0) -> float | None:
    """Return scikit-learn's silhouette by cosine over the rows in clusters; None where it has no meaning or scikit-learn is missing."""
    inside = np.flatnonzero(labels_N >= 0)
    if len(inside) > SILHOUETTE_ROWS:
        inside = np.sort(np.random.default_rng(seed).choice(inside, SILHOUETTE_ROWS, replace=False))
    found = len(np.unique(labels_N[inside]))
    if not 2 <= found < len(inside) or find_spec("sklearn") is None:
        return None
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(rows_ND[inside], labels_N[inside], metric="cosine"))


def need_sklearn(what: str) -> None:
    """Refuse to go on without scikit-learn."""
    if find_spec("sklearn") is None:
        raise MissingExtra(what, "topics")


def _kmeans(rows_ND: Vectors, options: ClusterOptions) -> Ints:
    k = options.k or _best_k(rows_ND, options.seed)
    return _fitted_kmeans(rows_ND, k, options.seed)


def _fitted_kmeans(rows_ND: Vectors, k: int, seed: int) -> Ints:
    from sklearn.cluster import KMeans

    if k >= _different(rows_ND):  # scikit-learn warns and leaves clusters empty: every different row is its own cluster
        return np.unique(rows_ND, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return _labels(KMeans(n_clusters=k, n_init=10, random_state=seed), rows_ND)


def _best_k(rows_ND: Vectors, seed: int) -> int:
    """Return the k of the best silhouette on a sample; the smallest of equal ones."""
    sample_ND = rows_ND
    if len(rows_ND) > TRIED_ROWS:
        sample_ND = rows_ND[np.sort(np.random.default_rng(seed).choice(len(rows_ND), TRIED_ROWS, replace=False))]
    possible = [k for k in TRIED if k < _different(sample_ND)]
    scores = [(silhouette(sample_ND, _fitted_kmeans(sample_ND, k, seed), seed=seed) or -1.0, -k) for k in possible]
    return -max(scores)[1] if scores else 1


def _agglomerative(rows_ND: Vectors, options: ClusterOptions) -> Ints:
    from sklearn.cluster import AgglomerativeClustering

    if len(rows_ND) == 1:
        return np.zeros(1, dtype=np.int64)
    if options.k is not None:
        return _labels(AgglomerativeClustering(n_clusters=options.k), rows_ND)
    furthest = 1 - options.threshold
    joined = AgglomerativeClustering(n_clusters=None, metric="cosine", linkage="average", distance_threshold=furthest)
    return _labels(joined, rows_ND)


def _communities(rows_ND: Vectors, options: ClusterOptions) -> Ints:
    return labels_of(communities(rows_ND, threshold=options.threshold, min_size=options.min_size), len(rows_ND))


def _hdbscan(rows_ND: Vectors, options: ClusterOptions) -> Ints:
    from sklearn.cluster import HDBSCAN

    if len(rows_ND) < options.min_size:
        return np.full(len(rows_ND), -1, dtype=np.int64)
    return _labels(HDBSCAN(min_cluster_size=options.min_size, copy=True), rows_ND)


def _labels(method: Any, rows_ND: Vectors) -> Ints:
    return np.asarray(method.fit_predict(rows_ND), dtype=np.int64)


def _different(rows_ND: Vectors) -> int:
    return len({row.tobytes() for row in rows_ND})


_METHODS: dict[str, Callable[[Vectors, ClusterOptions], Ints]] = {
    "kmeans": _kmeans,
    "agglomerative": _agglomerative,
    "communities": _communities,
    "hdbscan": _hdbscan,
}


def _check(rows: int, options: ClusterOptions) -> None:
    if options.k is not None and not 1 <= options.k <= rows:
        raise UsageError(f"k is {options.k} for {rows:,} rows, expected 1 to {rows:,}")
    if options.k is not None and options.method not in ("kmeans", "agglomerative"):
        raise UsageError(f"{options.method} finds the number of clusters itself and takes no k\n  use threshold or min_size")
    if options.method == "hdbscan" and options.min_size < 2:
        raise UsageError(f"min_size is {options.min_size}, expected at least 2 for hdbscan")
    if options.method == "agglomerative" and rows > MAX_AGGLOMERATIVE:
        raise UsageError(
            f"agglomerative clustering of {rows:,} rows holds all their pairs at once, the limit is {MAX_AGGLOMERATIVE:,}\n"
            "  use kmeans or communities"
        )
