"""Unit rows → the graph that ties each row to its nearest neighbours.

An edge weighs the share of neighbours that both ends have in common, so that a chance neighbour weighs little. Near neighbours are exact.

Shapes: N rows, R dimensions, K neighbours.
"""

from __future__ import annotations

from munjang.analyze.topics.modularity import Graph
from munjang.types import Vectors
from munjang.vectors.topk import top_k

NEIGHBOURS = 15


def neighbour_graph(rows_NR: Vectors, *, neighbours: int = NEIGHBOURS) -> Graph:
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
