"""A weighted graph → communities: groups of nodes with more weight between them than chance would give (Louvain's method).

Nodes move to the neighbouring community that gains most modularity until none gains; communities then become nodes, and so on. Nodes are
visited in an order drawn from a seed, ties go to the lower community, and arithmetic is in a fixed order: equal graphs and seeds give equal
communities on every run. As many communities come out as there are; `resolution` above 1 asks for more and smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.types import Ints

Graph = list[dict[int, float]]
"""For each node its neighbours and the weight to each, both ways; a node's weight to itself counts both ends."""

_LEAST_GAIN = 1e-9
_ROUNDS = 100  # a bound only; a handful is usual


def communities(graph: Graph, *, resolution: float = 1.0, seed: int = 0) -> Ints:
    """Return the community of each node, numbered from 0 by first member.

    >>> communities([{1: 1.0}, {0: 1.0}, {3: 1.0}, {2: 1.0}]).tolist()
    [0, 0, 1, 1]
    """
    random = np.random.default_rng(seed)
    member_N = np.arange(len(graph))
    while True:
        moved = _move(graph, resolution, random.permutation(len(graph)).tolist())
        names, joined = np.unique(moved, return_inverse=True)
        member_N = joined[member_N]
        if len(names) == len(graph):
            return numbered(member_N)
        graph = _folded(graph, joined.tolist(), len(names))


def numbered(labels_N: Ints) -> Ints:
    """Number groups from 0 in the order of their first member; below 0 stays.

    >>> numbered(np.array([7, -1, 3, 7])).tolist()
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


def _folded(graph: Graph, group: Sequence[int], groups: int) -> Graph:
    folded: Graph = [{} for _ in range(groups)]
    for node, edges in enumerate(graph):
        into = folded[group[node]]
        for other, weight in edges.items():
            into[group[other]] = into.get(group[other], 0.0) + weight
    return folded
