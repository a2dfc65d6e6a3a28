"""DeBERTa's relative positions: what a query says to a distance, and a distance to a key, added to the scores of attention.

Distances are put into buckets: near ones exactly, far ones ever more coarsely. A layer's tables, buckets times head, are computed once,
when the graph is written. Queries and keys are multiplied with the rows of every distance that a block has, and the products moved to
their places by reading them with another row length: that is four times as fast as picking each by its index.

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
        return "" if table_RD is None else pen.array(name, table_RD)

    def write(self, pen: GraphBuilder, query: str, key: str, query_places: str, key_places: str) -> str:
        """Return the sum of both terms, (B, N, C, L)."""
        queries, keys = pen.add("Shape", [query_places]), pen.add("Shape", [key_places])
        start, first = (pen.add("Gather", [places, pen.constant(0)]) for places in (query_places, key_places))
        between = pen.add("Sub", [start, first])
        terms = []
        if self.keys:
            terms.append(self._write_term(pen, query, self.keys, between, queries, keys, sign=-1))
        if self.queries:
            by_key = self._write_term(pen, key, self.queries, between, keys, queries, sign=1)  # (B, N, L, C)
            terms.append(pen.add("Transpose", [by_key], perm=[0, 1, 3, 2]))
        return terms[0] if len(terms) == 1 else pen.add("Add", terms)

    def _write_term(self, pen: GraphBuilder, x: str, table: str, between: str, rows: str, columns: str, *, sign: int) -> str:
        """Multiply rows of `x` with the tables' rows of every distance between a row and a column, and put each product in its column.

        Row r has the distance of column c at place c − r + rows − 1, so that it reads one place further left than the row before: read
        with rows of one number less, the products stand in their columns. One place more than there are distances keeps them apart.
        """
        one = pen.constant([1])
        width = pen.add("Add", [rows, columns])
        apart = pen.add("Sub", [width, one])
        shift = pen.add("Sub", [rows, one])
        count = pen.add("Range", [pen.constant(0), pen.add("Squeeze", [width, pen.constant([0])]), pen.constant(1)])
        steps = pen.add("Sub", [count, shift] if sign > 0 else [shift, count])  # how far the row stands behind the column
        distance = pen.add("Add", [steps, between])
        known = pen.add("Max", [pen.add("Min", [distance, pen.constant(self.middle)]), pen.constant(-self.middle)])  # others are not read
        chosen = pen.add("Gather", [table, pen.add("Gather", [self.buckets, pen.add("Add", [known, pen.constant(self.middle)])])])
        heads = pen.add("Reshape", [chosen, pen.constant([0, self.heads, -1])])
        texts_and_places = pen.add("Slice", [pen.add("Shape", [x]), pen.constant([0]), pen.constant([2])])
        split = pen.add("Reshape", [x, pen.add("Concat", [texts_and_places, pen.constant([self.heads, -1])], axis=0)])
        by_head = pen.add("Transpose", [split], perm=[0, 2, 1, 3])  # (B, N, rows, H)
        product = pen.add("MatMul", [by_head, pen.add("Transpose", [heads], perm=[1, 2, 0])])
        flat = pen.add("Reshape", [product, pen.constant([0, 0, -1])])
        stop = pen.add("Add", [shift, pen.add("Mul", [rows, apart])])
        shifted = pen.add("Slice", [flat, shift, stop, pen.constant([2])])
        square = pen.add("Reshape", [shifted, pen.add("Concat", [pen.constant([0, 0, -1]), apart], axis=0)])
        return pen.add("Slice", [square, pen.constant([0]), columns, pen.constant([3])])
