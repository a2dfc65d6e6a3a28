"""Attention over blocks of queries, one block after the other: what it needs in memory does not grow with the square of a text's length.

Each block reads only the keys that one of its queries may see, so a layer with a limited span costs a text's length times the span. The
same loop serves long texts of unequal lengths, local layers, causal layers and relative positions.

Shapes: T tokens in all, B texts, S the longest text, C queries of a block, L keys that they may see, N heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from munjang.engine.attention_shape import AttentionShape
from munjang.engine.onnxgraph import BOOL, FLOAT, INT64, MICROSOFT, GraphBuilder

SCORES = 1 << 25
"""Attention scores that a block may hold, all texts and heads together; unless a single query needs more."""
FEWEST_QUERIES = 16
HIDDEN_SCORE = -1e9


class ScoreBias(Protocol):
    """Adds something to the scores of a block."""

    def write(self, pen: GraphBuilder, query: str, key: str, query_places: str, key_places: str) -> str:
        """Return what is added to the scores of queries (B, C, D) and keys (B, L, D) at these places; (B or 1, N or 1, C, L)."""
        ...


class BlockedAttention:
    """Writes attention in blocks for one layout; what layers share is written once."""

    def __init__(self, pen: GraphBuilder, *, slots: str, mask: str, rows: str) -> None:
        self.pen, self.slots, self.mask, self.rows = pen, slots, mask, rows
        self._grids: dict[tuple[int, int], _Grid] = {}

    def write(self, q: str, k: str, v: str, shape: AttentionShape, bias: ScoreBias | None, *, pen: GraphBuilder | None = None) -> str:
        """Write the loop and return the attention output, one row per token; `pen` is the branch that it stands in, if it does."""
        pen = pen or self.pen
        grid = self._prepare(shape)
        query, key, value = pen.add("Gather", [q, grid.slots]), pen.add("Gather", [k, self.slots]), pen.add("Gather", [v, self.slots])
        body = pen.branch()
        number, going = pen.fresh("block"), pen.fresh("going")
        out = self._write_block(body, number, query, key, value, grid, shape, bias)
        still = body.add("Identity", [going])
        graph = body.loop_body("block", [(number, INT64), (going, BOOL)], [(still, BOOL), (out, FLOAT)])
        blocks = pen.add("Loop", [grid.count, ""], body=graph)
        ordered = pen.add("Transpose", [blocks], perm=[1, 0, 2, 3])
        return pen.add("Gather", [pen.add("Reshape", [ordered, pen.constant([-1, shape.width])]), grid.rows])

    def _prepare(self, shape: AttentionShape) -> _Grid:
        """Choose the block and write the grid that is a whole number of blocks wide."""
        pen = self.pen
        span = -1 if shape.before is None or shape.after is None else shape.before + shape.after
        key = (shape.heads, span)
        if key in self._grids:
            return self._grids[key]
        texts, longest = pen.add_many("Split", [pen.add("Shape", [self.slots])], 2, num_outputs=2)
        if span < 0:
            each = pen.add("Mul", [pen.add("Mul", [texts, longest]), pen.constant([shape.heads])])
            largest = pen.add("Max", [pen.add("Div", [pen.constant([SCORES]), each]), pen.constant([FEWEST_QUERIES])])
        else:
            largest = pen.constant([max(span, FEWEST_QUERIES)])
        count = _divide_up(pen, longest, largest)
        block = _divide_up(pen, longest, count)
        wide = pen.add("Mul", [count, block])
        missing = pen.add("Sub", [wide, longest])
        slots = pen.add("Pad", [self.slots, pen.add("Concat", [pen.constant([0, 0, 0]), missing], axis=0)])
        text = pen.add("Div", [self.rows, longest])
        rows = pen.add("Add", [pen.add("Mul", [text, wide]), pen.add("Mod", [self.rows, longest])])
        self._grids[key] = _Grid(slots, rows, pen.add("Squeeze", [count, pen.constant([0])]), block, longest)
        return self._grids[key]

    def _write_block(
        self, pen: GraphBuilder, number: str, query: str, key: str, value: str, grid: _Grid, shape: AttentionShape, bias: ScoreBias | None
    ) -> str:
        one = pen.constant([1])
        start = pen.add("Mul", [pen.add("Unsqueeze", [number, pen.constant([0])]), grid.block])
        stop = pen.add("Add", [start, grid.block])
        first, last = pen.constant([0]), grid.longest
        if shape.before is not None:
            first = pen.add("Max", [first, pen.add("Sub", [start, pen.constant([shape.before])])])
        if shape.after is not None:
            last = pen.add("Min", [last, pen.add("Add", [stop, pen.constant([shape.after])])])
        queries = pen.add("Slice", [query, start, stop, one])
        keys, values, mask = (pen.add("Slice", [x, first, last, one]) for x in (key, value, self.mask))
        scores = ""
        if bias is not None or not shape.sees_all:
            query_places, key_places = _count(pen, start, stop), _count(pen, first, last)
            scores = _write_span(pen, query_places, key_places, shape) if not shape.sees_all else ""
            if bias is not None:
                added = bias.write(pen, queries, keys, query_places, key_places)
                scores = pen.add("Add", [scores, added]) if scores else added
        inputs = [queries, keys, values, "", mask, scores] if scores else [queries, keys, values, "", mask]
        return pen.add("MultiHeadAttention", inputs, domain=MICROSOFT, num_heads=shape.heads, scale=shape.scale)


@dataclass(frozen=True)
class _Grid:
    """A grid of places that whole blocks fill, as names in the graph."""

    slots: str
    rows: str
    """The place of each token in it."""
    count: str
    block: str
    longest: str


def write_first_span(pen: GraphBuilder, longest: str, shape: AttentionShape) -> str:
    """Write what a text's first token adds to its scores so that it sees no further than it may; (1, 1, 1, S)."""
    places = pen.add("Range", [pen.constant(0), longest, pen.constant(1)])
    return _write_span(pen, pen.constant([0]), places, shape)


def _write_span(pen: GraphBuilder, query_places: str, key_places: str, shape: AttentionShape) -> str:
    """Write 0 where a query may see a key and a large negative number elsewhere; (1, 1, C, L)."""
    distance = pen.add("Sub", [key_places, pen.add("Unsqueeze", [query_places, pen.constant([1])])])
    seen = ""
    if shape.after is not None:
        seen = pen.add("LessOrEqual", [distance, pen.constant(shape.after)])
    if shape.before is not None:
        near = pen.add("GreaterOrEqual", [distance, pen.constant(-shape.before)])
        seen = pen.add("And", [seen, near]) if seen else near
    bias = pen.add("Where", [seen, pen.constant(0, np.float32), pen.constant(HIDDEN_SCORE, np.float32)])
    return pen.add("Unsqueeze", [bias, pen.constant([0, 1])])


def _count(pen: GraphBuilder, first: str, last: str) -> str:
    start, stop = (pen.add("Squeeze", [x, pen.constant([0])]) for x in (first, last))
    return pen.add("Range", [start, stop, pen.constant(1)])


def _divide_up(pen: GraphBuilder, x: str, y: str) -> str:
    """Write the quotient of whole numbers, rounded up."""
    return pen.add("Div", [pen.add("Sub", [pen.add("Add", [x, y]), pen.constant([1])]), y])
