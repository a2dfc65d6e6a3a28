"""Rows in the reduced space → which of them belong together, before any topic has a name.

The answer only starts the topics: their centres are taken from it, and every document then goes to its nearest centre. Groups that are too
small dissolve into the others, and with a target number the closest groups are joined until there are no more than that.

Shapes: N rows, R dimensions, K groups.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from munjang.analyze.topics.kmeans import centres, kmeans
from munjang.analyze.topics.modularity import communities, numbered
from munjang.analyze.topics.neighbour_graph import NEIGHBOURS, neighbour_graph
from munjang.analyze.topics.settings import TopicSettings
from munjang.errors import MissingExtra
from munjang.types import Ints, Vectors

RESOLUTION = 2.0
"""Topics are finer than the coarsest communities of a collection."""
FEW = 12
"""Rows below which a graph of neighbours says nothing: each row would be tied to half of them."""
HDBSCAN_DIMENSIONS = 10
"""Densities mean little in more dimensions."""
UMAP_DIMENSIONS = 5


def find_groups(rows_NR: Vectors, settings: TopicSettings) -> Ints:
    """Return the group of each row, from 0; −1 where the method gives none."""
    least = smallest_topic(len(rows_NR), settings)
    if len(rows_NR) < 2 or rows_NR.shape[1] == 0 or settings.topics == 1:
        return np.zeros(len(rows_NR), dtype=np.int64)
    labels_N = numbered(_GROUPINGS[settings.method](_spread(rows_NR, settings), settings, least))
    labels_N = without_small(labels_N, least)
    if (labels_N < 0).all():
        return np.zeros(len(rows_NR), dtype=np.int64)
    return labels_N if settings.topics is None else joined_to(rows_NR, labels_N, settings.topics)


def smallest_topic(documents: int, settings: TopicSettings) -> int:
    """Return the fewest documents of a topic in a collection of this size.

    >>> smallest_topic(12, TopicSettings()), smallest_topic(7_000, TopicSettings())
    (2, 10)
    """
    return max(1, min(settings.min_size, max(2, documents // 20)))


def without_small(labels_N: Ints, least: int) -> Ints:
    """Take the label from groups of fewer than `least` rows; the largest group stays in any case."""
    counts_K = np.bincount(labels_N[labels_N >= 0], minlength=1)
    kept_K = counts_K >= min(least, int(counts_K.max()))
    return numbered(np.where((labels_N >= 0) & kept_K[labels_N], labels_N, -1))


def joined_to(rows_NR: Vectors, labels_N: Ints, topics: int) -> Ints:
    """Join the two groups whose union stays tightest, again and again, until there are `topics`."""
    count = int(labels_N.max()) + 1
    group_of = np.arange(count)
    sizes_K = np.bincount(labels_N[labels_N >= 0], minlength=count).astype(np.float64)
    sums_KR = centres(rows_NR, labels_N, count).astype(np.float64)
    while len(sizes_K) > topics:
        unit_KR = sums_KR / np.maximum(np.linalg.norm(sums_KR, axis=1, keepdims=True), 1e-12)
        # Ward's cost on the sphere: what joining loses, which spares large groups.
        cost_KK = (1 - unit_KR @ unit_KR.T) * (sizes_K[:, None] * sizes_K / (sizes_K[:, None] + sizes_K))
        np.fill_diagonal(cost_KK, np.inf)
        a, b = sorted(int(place) for place in divmod(int(cost_KK.argmin()), len(sizes_K)))
        sums_KR[a] = (unit_KR[a] * sizes_K[a] + unit_KR[b] * sizes_K[b]) / (sizes_K[a] + sizes_K[b])
        sizes_K[a] += sizes_K[b]
        sums_KR, sizes_K = np.delete(sums_KR, b, axis=0), np.delete(sizes_K, b)
        group_of = np.where(group_of == b, a, np.where(group_of > b, group_of - 1, group_of))
    return numbered(np.where(labels_N >= 0, group_of[labels_N], -1))


def _spread(rows_NR: Vectors, settings: TopicSettings) -> Vectors:
    if settings.reduction != "umap" or len(rows_NR) < UMAP_DIMENSIONS + 10:
        return rows_NR
    try:
        import umap  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("reduction by UMAP", "umap") from None
    made = umap.UMAP(
        n_components=UMAP_DIMENSIONS, n_neighbors=NEIGHBOURS, min_dist=0.0, metric="cosine", random_state=settings.seed, n_jobs=1
    )
    spread_NR: Vectors = np.asarray(made.fit_transform(rows_NR), dtype=np.float32)
    centred_NR: Vectors = spread_NR - spread_NR.mean(axis=0)
    return centred_NR


def _by_graph(rows_NR: Vectors, settings: TopicSettings, _least: int) -> Ints:
    if len(rows_NR) < FEW:
        return _by_linkage(rows_NR)
    graph = neighbour_graph(rows_NR, neighbours=min(NEIGHBOURS, max(2, len(rows_NR) // 4)))
    return communities(graph, resolution=RESOLUTION, seed=settings.seed)


def _by_linkage(rows_NR: Vectors) -> Ints:
    """Join the two groups that are nearest on average while they are nearer than rows by chance: below 0 in a space whose mean is 0."""
    unit_NR = rows_NR / np.maximum(np.linalg.norm(rows_NR, axis=1, keepdims=True), 1e-12)
    cosines_NN = (unit_NR @ unit_NR.T).astype(np.float64)
    groups = [[row] for row in range(len(rows_NR))]
    while len(groups) > 1:
        nearness, a, b = max((cosines_NN[np.ix_(groups[a], groups[b])].mean(), -a, -b) for a in range(len(groups)) for b in range(a))
        if nearness <= 0:
            break
        groups[-b] += groups.pop(-a)
    labels_N = np.zeros(len(rows_NR), dtype=np.int64)
    for number, members in enumerate(groups):
        labels_N[members] = number
    return labels_N


def _by_kmeans(rows_NR: Vectors, settings: TopicSettings, _least: int) -> Ints:
    usual = max(2, round(np.sqrt(len(rows_NR) / 2)))
    return kmeans(rows_NR, min(settings.topics or usual, len(rows_NR)), seed=settings.seed)


def _by_hdbscan(rows_NR: Vectors, _settings: TopicSettings, least: int) -> Ints:
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError:
        raise MissingExtra("topics by HDBSCAN", "topics") from None
    few_NR = rows_NR[:, :HDBSCAN_DIMENSIONS]
    size = min(max(2, least), len(rows_NR))
    return np.asarray(HDBSCAN(min_cluster_size=size, copy=True).fit_predict(few_NR), dtype=np.int64)


_GROUPINGS: dict[str, Callable[[Vectors, TopicSettings, int], Ints]] = {"graph": _by_graph, "kmeans": _by_kmeans, "hdbscan": _by_hdbscan}
