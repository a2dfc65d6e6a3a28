"""Topics → a tree: which two are closest, then which two of those, up to one (average linkage over cosine distance).

Shapes: K topics, R features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.analyze.topics.ask import topic_centres
from munjang.analyze.topics.model import TopicModel
from munjang.types import Floats, Vectors


@dataclass(frozen=True)
class Join:
    """Two nodes become one. Topics are nodes 0 to K − 1, in the order of their numbers; the join at place j is node K + j."""

    a: int
    b: int
    distance: float
    size: int
    """Topics under the new node."""


def topic_hierarchy(model: TopicModel) -> list[Join]:
    """Return the K − 1 joins, closest first."""
    return average_linkage(topic_centres(model))


def average_linkage(rows_KR: Vectors) -> list[Join]:
    """Return the joins of unit rows, by the average of 1 − cosine between all members.

    >>> [(join.a, join.b) for join in average_linkage(np.array([[1, 0], [0, 1], [0.9, 0.1]], dtype=np.float32))]
    [(0, 2), (1, 3)]
    """
    count = len(rows_KR)
    apart: Floats = 1 - (rows_KR.astype(np.float64) @ rows_KR.T.astype(np.float64))
    np.fill_diagonal(apart, np.inf)
    node, size = list(range(count)), [1] * count
    alive = np.ones(count, dtype=bool)
    joins: list[Join] = []
    for number in range(count - 1):
        a, b = (int(place) for place in divmod(int(apart.argmin()), count))
        a, b = min(a, b), max(a, b)
        low, high = sorted((node[a], node[b]))
        joins.append(Join(low, high, max(0.0, float(apart[a, b])), size[a] + size[b]))
        mean = (apart[a] * size[a] + apart[b] * size[b]) / (size[a] + size[b])
        alive[b] = False
        mean[~alive] = np.inf
        mean[a] = np.inf
        apart[a], apart[:, a] = mean, mean
        apart[b], apart[:, b] = np.inf, np.inf
        node[a], size[a] = count + number, size[a] + size[b]
    return joins
