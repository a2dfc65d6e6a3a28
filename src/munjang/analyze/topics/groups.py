"""Rows in the reduced space → which of them belong together, before any topic has a name.

The answer only starts the topics: their centres are taken from it, and every document then goes to its nearest centre. Groups that are too
small dissolve into the others, and with a target number the closest groups are joined until there are no more than that.

Shapes: N rows, R dimensions, K groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from munjang.errors import MissingExtra
from munjang.types import Ints, Vectors
from munjang.vectors.similarity import prepare_rows
from munjang.vectors.topk import top_k

if TYPE_CHECKING:
    from munjang.analyze.topics.model import TopicSettings

_NOTHING = 1e-9  # a share of the variance below which a direction is rounding error
_MIDDLE = 1e-5  # a row this near to the mean has no direction of its own


@dataclass(frozen=True)
class Projection:
    """The mean of the unit vectors, and the directions kept."""

    mean_D: Vectors
    axes_DR: Vectors

    def apply(self, vectors_ND: Vectors) -> Vectors:
        """Return unit rows in the reduced space."""
        centred_ND: Vectors = prepare_rows(np.ascontiguousarray(vectors_ND, dtype=np.float32), "cosine") - self.mean_D
        reduced_NR: Vectors = centred_ND @ self.axes_DR
        return normalize_rows(reduced_NR)


def fit_projection(vectors_ND: Vectors, dimensions: int | None) -> Projection:
    """Return the projection onto the strongest directions; None keeps every direction there is."""
    unit_ND = prepare_rows(vectors_ND, "cosine").astype(np.float64)
    mean_D = unit_ND.mean(axis=0)
    unit_ND -= mean_D
    values, axes_DD = np.linalg.eigh(unit_ND.T @ unit_ND)
    order = np.argsort(-values, kind="stable")
    kept = order[values[order] > max(_NOTHING * float(values.sum()), 1e-12)][:dimensions]
    axes_DR = axes_DD[:, kept]
    if axes_DR.shape[1]:
        axes_DR = axes_DR * np.where(axes_DR[np.abs(axes_DR).argmax(axis=0), np.arange(len(kept))] < 0, -1.0, 1.0)
    return Projection(mean_D.astype(np.float32), np.ascontiguousarray(axes_DR, dtype=np.float32))


def normalize_rows(rows_NR: Vectors) -> Vectors:
    """Return rows of length one; rows next to zero become zeros."""
    length_N1 = np.linalg.norm(rows_NR, axis=1, keepdims=True)
    scaled_NR: Vectors = np.where(length_N1 > _MIDDLE, rows_NR / np.maximum(length_N1, _MIDDLE), 0).astype(np.float32)
    return scaled_NR


STARTS, ROUNDS = 4, 100


def run_kmeans(rows_NR: Vectors, k: int, *, seed: int = 0) -> Ints:
    """Return the group of each row, 0 to k − 1; fewer groups where there are fewer different rows."""
    random = np.random.default_rng(seed)
    best_N, best = np.zeros(len(rows_NR), dtype=np.int64), -np.inf
    for _ in range(STARTS):
        labels_N, total = _settle(rows_NR, _choose_start(rows_NR, k, random))
        if total > best + 1e-6:
            best_N, best = labels_N, total
    return best_N


def compute_centres(rows_NR: Vectors, labels_N: Ints, k: int) -> Vectors:
    """Return the mean direction of each group, (K, R); a group without rows has zeros."""
    sums_KR = np.zeros((k, rows_NR.shape[1]))
    order = np.argsort(labels_N, kind="stable")
    order = order[labels_N[order] >= 0]
    found, first = np.unique(labels_N[order], return_index=True)
    if len(found):
        sums_KR[found] = np.add.reduceat(rows_NR[order].astype(np.float64), first, axis=0)
    return normalize_rows(sums_KR.astype(np.float32))


def _choose_start(rows_NR: Vectors, k: int, random: np.random.Generator) -> Vectors:
    chosen = [int(random.integers(len(rows_NR)))]
    away_N = np.maximum(1 - rows_NR @ rows_NR[chosen[0]], 0).astype(np.float64)
    while len(chosen) < k and away_N.sum() > 1e-6:
        place = np.searchsorted(np.cumsum(away_N), random.random() * away_N.sum())
        chosen.append(min(int(place), len(rows_NR) - 1))
        away_N = np.minimum(away_N, np.maximum(1 - rows_NR @ rows_NR[chosen[-1]], 0))
    return rows_NR[chosen]


def _settle(rows_NR: Vectors, centres_KR: Vectors) -> tuple[Ints, float]:
    labels_N = np.full(len(rows_NR), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        scores_NK = rows_NR @ centres_KR.T
        now_N = scores_NK.argmax(axis=1)
        if (now_N == labels_N).all():
            break
        labels_N = now_N
        centres_KR = compute_centres(rows_NR, labels_N, len(centres_KR))
    return labels_N, float((rows_NR @ centres_KR.T).max(axis=1).sum(dtype=np.float64))


Graph = list[dict[int, float]]
"""For each node its neighbours and the weight to each, both ways; a node's weight to itself counts both ends."""

_LEAST_GAIN = 1e-9
_ROUNDS = 100  # a bound only; a handful is usual


def detect_communities(graph: Graph, *, resolution: float = 1.0, seed: int = 0) -> Ints:
    """Return the community of each node, numbered from 0 by first member.

    >>> detect_communities([{1: 1.0}, {0: 1.0}, {3: 1.0}, {2: 1.0}]).tolist()
    [0, 0, 1, 1]
    """
    random = np.random.default_rng(seed)
    member_N = np.arange(len(graph))
    while True:
        moved = _move(graph, resolution, random.permutation(len(graph)).tolist())
        names, joined = np.unique(moved, return_inverse=True)
        member_N = joined[member_N]
        if len(names) == len(graph):
            return number_groups(member_N)
        graph = _fold(graph, joined.tolist(), len(names))


def number_groups(labels_N: Ints) -> Ints:
    """Number groups from 0 in the order of their first member; below 0 stays.

    >>> number_groups(np.array([7, -1, 3, 7])).tolist()
    [0, -1, 1, 0]
    """
    names: dict[int, int] = {-1: -1}
    return np.array([names.setdefault(max(-1, label), len(names) - 1) for label in labels_N.tolist()], dtype=np.int64)


def _move(graph: Graph, resolution: float, order: Sequence[int]) -> list[int]:
    strength = [sum(edges.values()) for edges in graph]
    whole = sum(strength) or 1.0
    home, held = list(range(len(graph))), strength.copy()
    for _ in range(_ROUNDS):
        moves = 0
        for node in order:
            own, mine = home[node], strength[node]
            towards: dict[int, float] = {own: 0.0}
            for other, weight in graph[node].items():
                if other != node:
                    towards[home[other]] = towards.get(home[other], 0.0) + weight
            held[own] -= mine
            pull = resolution * mine / whole
            best, gain = own, towards[own] - pull * held[own]
            for group in sorted(towards):
                found = towards[group] - pull * held[group]
                if found > gain + _LEAST_GAIN:
                    best, gain = group, found
            held[best] += mine
            home[node] = best
            moves += best != own
        if not moves:
            break
    return home


def _fold(graph: Graph, group: Sequence[int], groups: int) -> Graph:
    folded: Graph = [{} for _ in range(groups)]
    for node, edges in enumerate(graph):
        into = folded[group[node]]
        for other, weight in edges.items():
            into[group[other]] = into.get(group[other], 0.0) + weight
    return folded


NEIGHBOURS = 15


def build_neighbour_graph(rows_NR: Vectors, *, neighbours: int = NEIGHBOURS) -> Graph:
    """Return the graph; every edge stands at both of its ends."""
    graph: Graph = [{} for _ in rows_NR]
    if len(rows_NR) < 2:
        return graph
    _, near_NK = top_k(rows_NR, rows_NR, k=min(neighbours, len(rows_NR) - 1), exclude_self=True)
    around = [{node, *found} for node, found in enumerate(near_NK.tolist())]
    for node, found in enumerate(near_NK.tolist()):
        for other in found:
            if other not in graph[node]:
                shared = len(around[node] & around[other])
                weight = shared / (len(around[node]) + len(around[other]) - shared)
                graph[node][other] = graph[other][node] = weight
    return graph


RESOLUTION = 2.0
"""Topics are finer than the coarsest communities of a collection."""
FEW = 12
"""Rows below which a graph of neighbours says nothing: each row would be tied to half of them."""
HDBSCAN_DIMENSIONS = 10
"""Densities mean little in more dimensions."""
UMAP_DIMENSIONS = 5


def find_groups(rows_NR: Vectors, settings: TopicSettings) -> Ints:
    """Return the group of each row, from 0; −1 where the method gives none."""
    least = choose_smallest_size(len(rows_NR), settings.min_size)
    if len(rows_NR) < 2 or rows_NR.shape[1] == 0 or settings.topics == 1:
        return np.zeros(len(rows_NR), dtype=np.int64)
    labels_N = number_groups(_GROUPINGS[settings.method](_spread_labels(rows_NR, settings), settings, least))
    labels_N = drop_small_groups(labels_N, least)
    if (labels_N < 0).all():
        return np.zeros(len(rows_NR), dtype=np.int64)
    return labels_N if settings.topics is None else join_groups(rows_NR, labels_N, settings.topics)


def choose_smallest_size(documents: int, min_size: int) -> int:
    """Return the fewest documents of a topic in a collection of this size.

    >>> choose_smallest_size(12, 10), choose_smallest_size(7_000, 10)
    (2, 10)
    """
    return max(1, min(min_size, max(2, documents // 20)))


def drop_small_groups(labels_N: Ints, least: int) -> Ints:
    """Take the label from groups of fewer than `least` rows; the largest group stays in any case."""
    counts_K = np.bincount(labels_N[labels_N >= 0], minlength=1)
    kept_K = counts_K >= min(least, int(counts_K.max()))
    return number_groups(np.where((labels_N >= 0) & kept_K[labels_N], labels_N, -1))


def join_groups(rows_NR: Vectors, labels_N: Ints, topics: int) -> Ints:
    """Join the two groups whose union stays tightest, again and again, until there are `topics`."""
    count = int(labels_N.max()) + 1
    group_of = np.arange(count)
    sizes_K = np.bincount(labels_N[labels_N >= 0], minlength=count).astype(np.float64)
    sums_KR = compute_centres(rows_NR, labels_N, count).astype(np.float64)
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
    return number_groups(np.where(labels_N >= 0, group_of[labels_N], -1))


def _spread_labels(rows_NR: Vectors, settings: TopicSettings) -> Vectors:
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


def _group_by_graph(rows_NR: Vectors, settings: TopicSettings, _least: int) -> Ints:
    if len(rows_NR) < FEW:
        return _group_by_linkage(rows_NR)
    graph = build_neighbour_graph(rows_NR, neighbours=min(NEIGHBOURS, max(2, len(rows_NR) // 4)))
    return detect_communities(graph, resolution=RESOLUTION, seed=settings.seed)


def _group_by_linkage(rows_NR: Vectors) -> Ints:
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


def _group_by_kmeans(rows_NR: Vectors, settings: TopicSettings, _least: int) -> Ints:
    usual = max(2, round(np.sqrt(len(rows_NR) / 2)))
    return run_kmeans(rows_NR, min(settings.topics or usual, len(rows_NR)), seed=settings.seed)


def _group_by_hdbscan(rows_NR: Vectors, _settings: TopicSettings, least: int) -> Ints:
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError:
        raise MissingExtra("topics by HDBSCAN", "topics") from None
    few_NR = rows_NR[:, :HDBSCAN_DIMENSIONS]
    size = min(max(2, least), len(rows_NR))
    return np.asarray(HDBSCAN(min_cluster_size=size, copy=True).fit_predict(few_NR), dtype=np.int64)


_GROUPINGS: dict[str, Callable[[Vectors, TopicSettings, int], Ints]] = {
    "graph": _group_by_graph,
    "kmeans": _group_by_kmeans,
    "hdbscan": _group_by_hdbscan,
}
