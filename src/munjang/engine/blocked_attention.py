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

    def write(self, builder: GraphBuilder, query: str, key: str, query_places: str, key_places: str) -> str:
        """Return what is added to the scores of queries (B, C, D) and keys (B, L, D) at these places; (B or 1, N or 1, C, L)."""
        ...


class BlockedAttention:
    """Writes attention in blocks for one layout; what layers share is written once."""

    def __init__(self, builder: GraphBuilder, *, slots: str, mask: str, rows: str) -> None:
        self.builder, self.slots, self.mask, self.rows = builder, slots, mask, rows
        self._grids: dict[tuple[int, int], _Grid] = {}

    def write(self, q: str, k: str, v: str, shape: AttentionShape, bias: ScoreBias | None, *, builder: GraphBuilder | None = None) -> str:
        """Write the loop and return the attention output, one row per token; `builder` is the branch that it stands in, if it does."""
        builder = builder or self.builder
        grid = self._prepare(shape)
        query, key, value = (
            builder.add("Gather", [q, grid.slots]),
            builder.add("Gather", [k, self.slots]),
            builder.add("Gather", [v, self.slots]),
        )
        body = builder.branch()
        number, going = builder.fresh("block"), builder.fresh("going")
        out = self._write_block(body, number, query, key, value, grid, shape, bias)
        still = body.add("Identity", [going])
        graph = body.loop_body("block", [(number, INT64), (going, BOOL)], [(still, BOOL), (out, FLOAT)])
        blocks = builder.add("Loop", [grid.count, ""], body=graph)
        ordered = builder.add("Transpose", [blocks], perm=[1, 0, 2, 3])
        return builder.add("Gather", [builder.add("Reshape", [ordered, builder.constant([-1, shape.width])]), grid.rows])

    def _prepare(self, shape: AttentionShape) -> _Grid:
        """Choose the block and write the grid that is a whole number of blocks wide."""
        builder = self.builder
        span = -1 if shape.before is None or shape.after is None else shape.before + shape.after
        key = (shape.heads, span)
        if key in self._grids:
            return self._grids[key]
        texts, longest = builder.add_many("Split", [builder.add("Shape", [self.slots])], 2, num_outputs=2)
        if span < 0:
            each = builder.add("Mul", [builder.add("Mul", [texts, longest]), builder.constant([shape.heads])])
            largest = builder.add("Max", [builder.add("Div", [builder.constant([SCORES]), each]), builder.constant([FEWEST_QUERIES])])
        else:
            largest = builder.constant([max(span, FEWEST_QUERIES)])
        count = _divide_up(builder, longest, largest)
        block = _divide_up(builder, longest, count)
        wide = builder.add("Mul", [count, block])
        missing = builder.add("Sub", [wide, longest])
        slots = builder.add("Pad", [self.slots, builder.add("Concat", [builder.constant([0, 0, 0]), missing], axis=0)])
        text = builder.add("Div", [self.rows, longest])
        rows = builder.add("Add", [builder.add("Mul", [text, wide]), builder.add("Mod", [self.rows, longest])])
        self._grids[key] = _Grid(slots, rows, builder.add("Squeeze", [count, builder.constant([0])]), block, longest)
        return self._grids[key]

    def _write_block(
        self,
        builder: GraphBuilder,
        number: str,
        query: str,
        key: str,
        value: str,
        grid: _Grid,
        shape: AttentionShape,
        bias: ScoreBias | None,
    ) -> str:
        one = builder.constant([1])
        start = builder.add("Mul", [builder.add("Unsqueeze", [number, builder.constant([0])]), grid.block])
        stop = builder.add("Add", [start, grid.block])
        first, last = builder.constant([0]), grid.longest
        if shape.before is not None:
            first = builder.add("Max", [first, builder.add("Sub", [start, builder.constant([shape.before])])])
        if shape.after is not None:
            last = builder.add("Min", [last, builder.add("Add", [stop, builder.constant([shape.after])])])
        queries = builder.add("Slice", [query, start, stop, one])
        keys, values, mask = (builder.add("Slice", [x, first, last, one]) for x in (key, value, self.mask))
        scores = ""
        if bias is not None or not shape.sees_all:
            query_places, key_places = _count(builder, start, stop), _count(builder, first, last)
            scores = _write_span(builder, query_places, key_places, shape) if not shape.sees_all else ""
            if bias is not None:
                added = bias.write(builder, queries, keys, query_places, key_places)
                scores = builder.add("Add", [scores, added]) if scores else added
        inputs = [queries, keys, values, "", mask, scores] if scores else [queries, keys, values, "", mask]
        return builder.add("MultiHeadAttention", inputs, domain=MICROSOFT, num_heads=shape.heads, scale=shape.scale)


@dataclass(frozen=True)
class _Grid:
    """A grid of places that whole blocks fill, as names in the graph."""

    slots: str
    rows: str
    """The place of each token in it."""
    count: str
    block: str
    longest: str


def write_first_span(builder: GraphBuilder, longest: str, shape: AttentionShape) -> str:
    """Write what a text's first token adds to its scores so that it sees no further than it may; (1, 1, 1, S)."""
    places = builder.add("Range", [builder.constant(0), longest, builder.constant(1)])
    return _write_span(builder, builder.constant([0]), places, shape)


def write_span(builder: GraphBuilder, longest: str, shape: AttentionShape) -> str:
    """Write what is added to all scores of texts up to `longest` tokens so that none sees further than it may; (1, 1, S, S)."""
    places = builder.add("Range", [builder.constant(0), longest, builder.constant(1)])
    return _write_span(builder, places, places, shape)


def _write_span(builder: GraphBuilder, query_places: str, key_places: str, shape: AttentionShape) -> str:
    """Write 0 where a query may see a key and a large negative number elsewhere; (1, 1, C, L)."""
    distance = builder.add("Sub", [key_places, builder.add("Unsqueeze", [query_places, builder.constant([1])])])
    seen = ""
    if shape.after is not None:
        seen = builder.add("LessOrEqual", [distance, builder.constant(shape.after)])
    if shape.before is not None:
        near = builder.add("GreaterOrEqual", [distance, builder.constant(-shape.before)])
        seen = builder.add("And", [seen, near]) if seen else near
    bias = builder.add("Where", [seen, builder.constant(0, np.float32), builder.constant(HIDDEN_SCORE, np.float32)])
    return builder.add("Unsqueeze", [bias, builder.constant([0, 1])])


def _count(builder: GraphBuilder, first: str, last: str) -> str:
    start, stop = (builder.add("Squeeze", [x, builder.constant([0])]) for x in (first, last))
    return builder.add("Range", [start, stop, builder.constant(1)])


def _divide_up(builder: GraphBuilder, x: str, y: str) -> str:
    """Write the quotient of whole numbers, rounded up."""
    return builder.add("Div", [builder.add("Sub", [builder.add("Add", [x, y]), builder.constant([1])]), y])
