"""DeBERTa's relative positions: what a query says to a distance, and a distance to a key, added to the scores of attention.

Distances are put into buckets: near ones exactly, far ones ever more coarsely. A layer's tables, buckets times head, are computed once,
when the graph is written. The buckets that a batch cannot reach are cut off before anything is multiplied.

Shapes: B texts, C queries, L keys, N heads, H numbers of a head, R buckets, D = N × H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.onnxgraph import GraphBuilder
from munjang.types import Floats, Ints


@dataclass(frozen=True)
class RelativeTables:
    """One layer's tables, (R, D), already multiplied by the scale of the scores; None where the model leaves the term out."""

    keys_RD: Floats | None
    """Multiplied with queries."""
    queries_RD: Floats | None
    """Multiplied with keys."""


def compute_buckets(longest: int, *, buckets: int, farthest: int) -> Ints:
    """Return the row of the tables for every distance query − key from −(longest−1) to longest−1; `buckets` 0 keeps distances apart.

    >>> compute_buckets(4, buckets=0, farthest=2).tolist()
    [0, 0, 1, 2, 3, 3, 3]
    """
    distance = np.arange(-(longest - 1), longest)
    span = farthest
    if buckets > 0:
        span, middle = buckets, buckets // 2
        size = np.where(np.abs(distance) < middle, middle - 1, np.abs(distance)).astype(np.float32)
        ratio = np.log(np.float32((farthest - 1) / middle))
        coarse = np.ceil(np.log(size / np.float32(middle)) / ratio * np.float32(middle - 1)) + middle
        distance = np.where(size <= middle, distance, coarse * np.sign(distance)).astype(np.int64)
    return np.clip(distance + span, 0, 2 * span - 1)


class DisentangledBias:
    """Writes the relative terms of one layer; see `ScoreBias`."""

    def __init__(self, pen: GraphBuilder, tables: RelativeTables, *, heads: int, buckets: str, middle: int, name: str) -> None:
        self.heads, self.buckets, self.middle = heads, buckets, middle
        self.keys = self._keep(pen, tables.keys_RD, f"{name}.relative_keys")
        self.queries = self._keep(pen, tables.queries_RD, f"{name}.relative_queries")

    def _keep(self, pen: GraphBuilder, table_RD: Floats | None, name: str) -> str:
        if table_RD is None:
            return ""
        return pen.array(name, table_RD.reshape(len(table_RD), self.heads, -1).transpose(1, 2, 0))  # (N, H, R)

    def write(self, pen: GraphBuilder, query: str, key: str, query_places: str, key_places: str) -> str:
        """Return the sum of both terms, (B, N, C, L)."""
        distance = pen.add("Sub", [pen.add("Unsqueeze", [query_places, pen.constant([1])]), key_places])
        known = pen.add("Min", [distance, pen.constant(self.middle)])  # a block's last queries may stand behind the longest text
        row_CL = pen.add("Gather", [self.buckets, pen.add("Add", [known, pen.constant(self.middle)])])
        lowest, highest = pen.add("ReduceMin", [row_CL], keepdims=0), pen.add("ReduceMax", [row_CL], keepdims=0)
        row_CL = pen.add("Sub", [row_CL, lowest])
        first = pen.add("Unsqueeze", [lowest, pen.constant([0])])
        last = pen.add("Add", [pen.add("Unsqueeze", [highest, pen.constant([0])]), pen.constant([1])])
        terms = []
        if self.keys:
            terms.append(self._write_term(pen, query, self.keys, row_CL, first, last, by_key=False))
        if self.queries:
            terms.append(self._write_term(pen, key, self.queries, row_CL, first, last, by_key=True))
        return terms[0] if len(terms) == 1 else pen.add("Add", terms)

    def _write_term(self, pen: GraphBuilder, x: str, table: str, row_CL: str, first: str, last: str, *, by_key: bool) -> str:
        """Multiply queries or keys with the reachable rows, and pick for each pair the product with its distance."""
        shape = pen.add("Shape", [x])
        texts_and_places = pen.add("Slice", [shape, pen.constant([0]), pen.constant([2])])
        apart = pen.add("Reshape", [x, pen.add("Concat", [texts_and_places, pen.constant([self.heads, -1])], axis=0)])
        by_head = pen.add("Transpose", [apart], perm=[0, 2, 1, 3])  # (B, N, places, H)
        product = pen.add("MatMul", [by_head, pen.add("Slice", [table, first, last, pen.constant([2])])])
        rows = pen.add("Sub", [last, first])
        places = pen.add("Range", [pen.constant(0), pen.add("Gather", [shape, pen.constant(1)]), pen.constant(1)])
        offset = pen.add("Mul", [places if by_key else pen.add("Unsqueeze", [places, pen.constant([1])]), rows])
        flat = pen.add("Reshape", [product, pen.constant([0, 0, -1])])
        return pen.add("Gather", [flat, pen.add("Add", [row_CL, offset])], axis=2)
