"""Vectors → clusters, by one of four methods, and how well they are apart.

    kmeans          k round clusters; without k, the k of the best silhouette
    agglomerative   k clusters, or all that stay apart at a threshold, by joining the nearest
    communities     dense groups within a threshold of a centre; the rest belongs to none (`find_communities`)
    hdbscan         groups of any shape where rows lie dense; the rest belongs to none

k-means, agglomerative clustering and HDBSCAN are scikit-learn's (extra `topics`), on the vectors as they are handed in, with a seed, so
their labels are scikit-learn's own. −1 is no cluster. Names for clusters are left to `keywords.find_cluster_phrases`.

Shapes: N rows, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.dedupe import find_same_rows
from munjang.errors import MissingExtra, UsageError
from munjang.options import Option, Seed, check_options
from munjang.tables import Row, Table
from munjang.types import Ints, Vectors
from munjang.vectors.range_search import visit_pairs_within
from munjang.vectors.similarity import prepare_rows, to_rows
from munjang.wording import brief_repr, count, name_facts

MIN_SIZE = 10
MAX_PAIRS = 16_000_000
"""Pairs of neighbours that are kept; 24 bytes each while they are sorted."""

Neighbours = Callable[[int], tuple[Ints, Vectors]]
"""A row → the other rows within the threshold and their cosines."""


def find_communities(
    vectors: ArrayLike, *, threshold: float = 0.75, min_size: int = MIN_SIZE, max_pairs: int = MAX_PAIRS
) -> list[tuple[int, ...]]:
    """Return the communities, largest first; of each the centre first, then the others by how close they are, equal ones by row.

    >>> find_communities([[1, 0], [0, 1], [1, 0.1], [0.9, 0]], threshold=0.9, min_size=2)
    [(0, 3, 2)]
    """
    rows_ND = to_rows(vectors, "vectors")
    if min_size < 1:
        raise UsageError(f"min_size is {min_size}, expected at least 1")
    if len(rows_ND) < min_size or not rows_ND.size:
        return []
    unit_ND = prepare_rows(rows_ND, "cosine")
    same = find_same_rows(None, unit_ND)
    unit_UD = unit_ND[[group[0] for group in same]]
    copies_U = np.array([len(group) for group in same], dtype=np.int64)
    near = _Near(unit_UD, copies_U, threshold, max_pairs)
    visit_pairs_within(unit_UD, threshold, near.visit)
    nonzero_U = unit_UD.any(axis=1)
    chosen = _choose(near.count_U * nonzero_U, copies_U, min_size, near.neighbours())
    return sorted((_expand(members, same) for members in chosen), key=len, reverse=True)


def label_rows(groups: list[tuple[int, ...]], rows: int) -> Ints:
    """Return the number of each row's group, −1 for rows in none.

    >>> label_rows([(0, 3)], 4).tolist()
    [0, -1, -1, 0]
    """
    labels_N = np.full(rows, -1, dtype=np.int64)
    for number, members in enumerate(groups):
        labels_N[list(members)] = number
    return labels_N


class _Near:
    """How many neighbours every row has, and which, as long as they are few enough to be kept."""

    def __init__(self, unit_UD: Vectors, copies_U: Ints, threshold: float, max_pairs: int) -> None:
        self.unit_UD, self.copies_U = unit_UD, copies_U
        self.floor, self.max_pairs = np.float32(threshold), max_pairs
        self.count_U = copies_U.copy()
        self._kept: list[tuple[Ints, Ints, Vectors]] | None = []
        self._pairs = 0

    def visit(self, a_P: Ints, b_P: Ints, score_P: Vectors) -> None:
        """Count the pairs, and keep them if there is room."""
        size = len(self.count_U)
        for one_P, other_P in ((a_P, b_P), (b_P, a_P)):
            self.count_U += np.bincount(one_P, weights=self.copies_U[other_P], minlength=size).astype(np.int64)
        self._pairs += len(a_P)
        if self._pairs > self.max_pairs:
            self._kept = None
        if self._kept is not None:
            self._kept.append((a_P.astype(np.int32), b_P.astype(np.int32), score_P))

    def neighbours(self) -> Neighbours:
        """Return the way to each row's neighbours."""
        if self._kept is None:
            return self._found_again
        return _list_communities(self._kept, len(self.count_U))

    def _found_again(self, centre: int) -> tuple[Ints, Vectors]:
        """Compare one row with all others once more."""
        scores_U = self.unit_UD @ self.unit_UD[centre]
        scores_U[centre] = -np.inf
        near = np.flatnonzero(scores_U >= self.floor)
        return near, scores_U[near]


def _list_communities(kept: list[tuple[Ints, Ints, Vectors]], rows: int) -> Neighbours:
    """Return a way to each row's neighbours, sorted by cosine, then by row."""
    empty = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    a_P, b_P, score_P = (np.concatenate(part) for part in zip(empty, *kept, strict=True))
    one_P, other_P = np.concatenate([a_P, b_P]), np.concatenate([b_P, a_P])
    order = np.argsort(one_P, kind="stable")
    begins = np.searchsorted(one_P[order], np.arange(rows + 1))
    other_P, score_P = other_P[order], np.concatenate([score_P, score_P])[order]

    def neighbours(centre: int) -> tuple[Ints, Vectors]:
        part = slice(begins[centre], begins[centre + 1])
        return other_P[part].astype(np.int64), score_P[part]

    return neighbours


def _choose(count_U: Ints, copies_U: Ints, min_size: int, neighbours: Neighbours) -> Iterator[list[int]]:
    """Yield the different rows of each community, the centre first."""
    order = np.argsort(-count_U, kind="stable")
    centres = order[count_U[order] >= min_size]
    used_U = np.zeros(len(count_U), dtype=bool)
    for centre in centres.tolist():
        if used_U[centre]:
            continue
        other_P, score_P = neighbours(centre)
        free = ~used_U[other_P]
        other_P, score_P = other_P[free], score_P[free]
        if copies_U[centre] + copies_U[other_P].sum() < min_size:
            continue
        other_P = other_P[np.lexsort((other_P, -score_P))]
        used_U[centre] = True
        used_U[other_P] = True
        yield [centre, *other_P.tolist()]


def _expand(members: list[int], same: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(row for member in members for row in same[member])


Method: TypeAlias = Literal["kmeans", "agglomerative", "communities", "hdbscan"]

MAX_AGGLOMERATIVE = 20_000
"""Rows that are joined step by step; all pairs of them are held at once."""
SILHOUETTE_ROWS = 5_000
"""Rows by which a silhouette is estimated when there are more."""
TRIED = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The k that are tried when none is given."""
TRIED_ROWS = 2_000


@brief_repr
@dataclass(frozen=True)
class _Options:
    """What `cluster` was asked for."""

    method: Method
    k: int | None
    threshold: float
    min_size: int
    seed: int


@dataclass(frozen=True)
class Clustering(Table):
    """The cluster of each row, −1 for none, and the silhouette (−1 to 1), if there is one."""

    columns: ClassVar[tuple[str, ...]] = ("cluster",)

    labels_N: Ints
    silhouette: float | None

    def __repr__(self) -> str:
        made = [count(len(self.sizes), "cluster"), count(len(self.labels_N), "row"), f"{self.outliers:,} without a cluster"]
        return name_facts("Clustering", made if self.silhouette is None else [*made, f"silhouette {self.silhouette:.3f}"])

    def to_rows(self) -> list[Row]:
        """Return the cluster of each row, −1 for none."""
        return [{"cluster": label} for label in self.labels_N.tolist()]

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


def cluster(
    vectors: ArrayLike,
    *,
    method: Annotated[Method, Option("The clustering method.")] = "kmeans",
    k: Annotated[
        int | None,
        Option(
            "For kmeans and agglomerative: number of clusters. Default for kmeans: the best silhouette.", min=1, flags=("--clusters", "-k")
        ),
    ] = None,
    threshold: Annotated[
        float, Option("For communities, and agglomerative without -k: minimum cosine within a cluster.", min=-1, max=1)
    ] = 0.75,
    min_size: Annotated[int, Option("For communities and hdbscan: the minimum size of a cluster.", min=1)] = MIN_SIZE,
    seed: Seed = 0,
) -> Clustering:
    """Return the clusters of the rows.

    >>> found = cluster([[1, 0], [0, 1], [1, 0.1]], method="communities", threshold=0.9, min_size=2)
    >>> found.labels_N.tolist()
    [0, -1, 0]
    """
    check_options(cluster, locals())
    options = _Options(method, k, threshold, min_size, seed)
    rows_ND = to_rows(vectors, "vectors")
    if not rows_ND.size:
        return Clustering(np.empty(0, dtype=np.int64), None)
    if method != "communities":
        require_sklearn("clustering")
    _check(len(rows_ND), options)
    labels_N = _METHODS[method](rows_ND, options)
    return Clustering(labels_N, compute_silhouette(rows_ND, labels_N, seed=seed))


def compute_silhouette(rows_ND: Vectors, labels_N: Ints, *, seed: int = 0) -> float | None:
    """Return scikit-learn's silhouette by cosine over the rows in clusters; None where it has no meaning or scikit-learn is missing."""
    inside = np.flatnonzero(labels_N >= 0)
    if len(inside) > SILHOUETTE_ROWS:
        inside = np.sort(np.random.default_rng(seed).choice(inside, SILHOUETTE_ROWS, replace=False))
    found = len(np.unique(labels_N[inside]))
    if not 2 <= found < len(inside) or find_spec("sklearn") is None:
        return None
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(rows_ND[inside], labels_N[inside], metric="cosine"))


def require_sklearn(what: str) -> None:
    """Refuse to go on without scikit-learn."""
    if find_spec("sklearn") is None:
        raise MissingExtra(what, "topics")


def _cluster_kmeans(rows_ND: Vectors, options: _Options) -> Ints:
    k = options.k or _find_best_k(rows_ND, options.seed)
    return _fit_kmeans(rows_ND, k, options.seed)


def _fit_kmeans(rows_ND: Vectors, k: int, seed: int) -> Ints:
    from sklearn.cluster import KMeans

    if k >= _count_different(rows_ND):  # scikit-learn warns and leaves clusters empty: every different row is its own cluster
        return np.unique(rows_ND, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return _number_labels(KMeans(n_clusters=k, n_init=10, random_state=seed), rows_ND)


def _find_best_k(rows_ND: Vectors, seed: int) -> int:
    """Return the k of the best silhouette on a sample; the smallest of equal ones."""
    sample_ND = rows_ND
    if len(rows_ND) > TRIED_ROWS:
        sample_ND = rows_ND[np.sort(np.random.default_rng(seed).choice(len(rows_ND), TRIED_ROWS, replace=False))]
    possible = [k for k in TRIED if k < _count_different(sample_ND)]
    scores = [(compute_silhouette(sample_ND, _fit_kmeans(sample_ND, k, seed), seed=seed) or -1.0, -k) for k in possible]
    return -max(scores)[1] if scores else 1


def _cluster_agglomerative(rows_ND: Vectors, options: _Options) -> Ints:
    from sklearn.cluster import AgglomerativeClustering

    if len(rows_ND) == 1:
        return np.zeros(1, dtype=np.int64)
    if options.k is not None:
        return _number_labels(AgglomerativeClustering(n_clusters=options.k), rows_ND)
    furthest = 1 - options.threshold
    joined = AgglomerativeClustering(n_clusters=None, metric="cosine", linkage="average", distance_threshold=furthest)
    return _number_labels(joined, rows_ND)


def _cluster_communities(rows_ND: Vectors, options: _Options) -> Ints:
    return label_rows(find_communities(rows_ND, threshold=options.threshold, min_size=options.min_size), len(rows_ND))


def _cluster_hdbscan(rows_ND: Vectors, options: _Options) -> Ints:
    from sklearn.cluster import HDBSCAN

    if len(rows_ND) < options.min_size:
        return np.full(len(rows_ND), -1, dtype=np.int64)
    return _number_labels(HDBSCAN(min_cluster_size=options.min_size, copy=True), rows_ND)


def _number_labels(method: Any, rows_ND: Vectors) -> Ints:
    return np.asarray(method.fit_predict(rows_ND), dtype=np.int64)


def _count_different(rows_ND: Vectors) -> int:
    return len({row.tobytes() for row in rows_ND})


_METHODS: dict[str, Callable[[Vectors, _Options], Ints]] = {
    "kmeans": _cluster_kmeans,
    "agglomerative": _cluster_agglomerative,
    "communities": _cluster_communities,
    "hdbscan": _cluster_hdbscan,
}


def _check(rows: int, options: _Options) -> None:
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
