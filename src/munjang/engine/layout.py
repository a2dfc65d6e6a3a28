"""How the tokens of a batch lie in memory, and attention over them.

Everywhere else a batch is flat: one row per token. Only attention must know which rows belong together:

- `PackedLayout` (the engine's own): no padding rows at all. Texts of equal length are reshaped for attention; unequal ones are
  spread over a padded (texts, longest) grid for attention only, and gathered back. onnxruntime's fused operator. Where a token does not
  see all others, or texts are long, queries go in blocks (`blocked_attention.py`).
- `PaddedLayout` (for export): the batch comes padded, in the inputs everyone knows; standard ONNX operators only.

Shapes: T tokens in all, B texts, S the longest text, N heads, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from munjang.engine.attention_shape import AttentionShape
from munjang.engine.blocked_attention import BlockedAttention, ScoreBias, write_first_span, write_span
from munjang.engine.onnxgraph import BOOL, FLOAT, INT32, INT64, MICROSOFT, GraphBuilder, Input
from munjang.types import Floats

Feed = dict[str, np.ndarray[Any, Any]]


def pack(ids: Sequence[Sequence[int]], *, first_position: int, hidden_prefix: int = 0, seen: Sequence[int] | None = None) -> Feed:
    """Return the engine's inputs for these texts; the first `hidden_prefix` places of each text do not count in pooling.

    `seen` is how many tokens of each text are attended to, where that is not all: the others see these, and nobody sees them.

    >>> feed = pack([[5, 6, 7], [8]], first_position=0)
    >>> feed["ids"].tolist(), feed["slots"].tolist(), bool(feed["padded"])
    ([5, 6, 7, 8], [[0, 1, 2], [3, 0, 0]], True)
    """
    lengths_B = np.fromiter((len(one) for one in ids), np.int64, len(ids))
    total, longest = int(lengths_B.sum()), int(lengths_B.max())
    ids_T = np.fromiter(chain.from_iterable(ids), np.int64, total)
    if int(lengths_B.min()) == longest and seen is None:
        return _pack_equal(ids_T, len(ids), longest, first_position, hidden_prefix)
    starts_B = np.cumsum(lengths_B) - lengths_B
    places_S = np.arange(longest)
    mask_BS = places_S < lengths_B[:, None]
    slots_BS = np.where(mask_BS, starts_B[:, None] + places_S, 0)
    grid_positions_BS = np.broadcast_to(places_S, mask_BS.shape)
    return {
        "ids": ids_T,
        "positions": grid_positions_BS[mask_BS] + first_position,
        "slots": slots_BS,
        "rows": np.flatnonzero(mask_BS),
        "mask": (mask_BS if seen is None else mask_BS & (places_S < np.asarray(seen)[:, None])).astype(np.int32),
        "pool_mask": _make_pool_mask(mask_BS, hidden_prefix),
        "padded": np.array(True),
    }


def _pack_equal(ids_T: np.ndarray[Any, Any], texts: int, length: int, first_position: int, hidden_prefix: int) -> Feed:
    mask_BS = np.ones((texts, length), np.int32)
    return {
        "ids": ids_T,
        "positions": np.tile(np.arange(first_position, first_position + length), texts),
        "slots": np.arange(texts * length).reshape(texts, length),
        "rows": np.arange(texts * length),
        "mask": mask_BS,
        "pool_mask": _make_pool_mask(mask_BS, hidden_prefix),
        "padded": np.array(False),
    }


def _make_pool_mask(mask_BS: np.ndarray[Any, Any], hidden_prefix: int) -> np.ndarray[Any, Any]:
    pooled_BS = mask_BS.astype(np.float32)
    pooled_BS[:, :hidden_prefix] = 0
    return pooled_BS


PACKED_INPUTS: tuple[Input, ...] = (
    ("ids", INT64, ["T"]),
    ("positions", INT64, ["T"]),
    ("slots", INT64, ["B", "S"]),
    ("rows", INT64, ["T"]),
    ("mask", INT32, ["B", "S"]),
    ("pool_mask", FLOAT, ["B", "S"]),
    ("padded", BOOL, []),
)
"""ids and positions of all tokens; the row of each grid place; the grid place of each row; which places are real; which count in
pooling."""

PADDED_INPUTS: tuple[Input, ...] = (("input_ids", INT64, ["batch", "tokens"]), ("attention_mask", INT64, ["batch", "tokens"]))


class TokenLayout(Protocol):
    """Where a batch's tokens lie."""

    ids: str
    positions: str
    slots: str
    rows: str
    mask: str
    """The grid's place of each row, and which places are real; unknown where `portable`."""
    pool_mask: str
    portable: bool
    """Whether the graph must run elsewhere too, and not only in onnxruntime."""

    def first_rows(self) -> str:
        """Return the row of each text's first token, shape (B,)."""
        ...

    def attend(self, q: str, k: str, v: str, *, shape: AttentionShape, first_only: bool, bias: ScoreBias | None = None) -> str:
        """Return the attention output, one row per query row; keys and values have as many heads as queries."""
        ...

    def set_relative_bias(self, table_RN: Floats) -> None:
        """Add a bias to all attention scores: one row per distance key − query, from −(P−1) to P−1, one column per head."""
        ...


class PackedLayout:
    """No padding rows; attention through onnxruntime's MultiHeadAttention."""

    portable = False
    rows, mask = "rows", "mask"

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.ids, self.positions, self.slots, self.pool_mask = "ids", "positions", "slots", "pool_mask"
        self._grid = builder.add("Shape", ["slots"])
        self._longest = builder.add("Gather", [self._grid, builder.constant(1)])
        self._bias = ""
        self._blocked = BlockedAttention(builder, slots="slots", mask="mask", rows="rows")
        self._tests: dict[int, str] = {}
        self._spans: dict[tuple[int | None, int | None], str] = {}

    def first_rows(self) -> str:
        """Take the first column of the grid."""
        return self.builder.add("Gather", [self.slots, self.builder.constant(0)], axis=1)

    def set_relative_bias(self, table_RN: Floats) -> None:
        """Build the (1, N, S, S) bias once for all layers."""
        self._bias = _add_relative_bias(self.builder, self._longest, table_RN)

    def attend(self, q: str, k: str, v: str, *, shape: AttentionShape, first_only: bool, bias: ScoreBias | None = None) -> str:
        """Write the ways of attending, chosen at run time by `padded` and by the longest text."""
        if first_only or (shape.sees_all and bias is None):
            return self._attend_all(self.builder, q, k, v, shape, first_only=first_only, bias=bias)
        short, long = self.builder.branch(), self.builder.branch()
        whole = self._attend_short(short, q, k, v, shape, bias)
        blocks = self._blocked.write(q, k, v, shape, bias, builder=long)
        branches = {"then_branch": long.subgraph("long", blocks), "else_branch": short.subgraph("short", whole)}
        return self.builder.add("If", [self._is_longer(SHORT_TEXT)], **branches)

    def _attend_short(self, builder: GraphBuilder, q: str, k: str, v: str, shape: AttentionShape, bias: ScoreBias | None) -> str:
        """Attend to the whole of each text at once; what may not be seen is hidden by a bias, which all layers of one span share."""
        if shape.sees_all:
            return self._attend_all(builder, q, k, v, shape, first_only=False, bias=bias)
        if bias is not None or not shape.before or not shape.after:
            return self._attend_all(builder, q, k, v, shape, first_only=False, bias=bias, span=self._span_bias(shape))
        near, far = builder.branch(), builder.branch()  # in a text no longer than the span, every token sees all
        free = self._attend_all(near, q, k, v, shape, first_only=False, bias=None)
        bound = self._attend_all(far, q, k, v, shape, first_only=False, bias=None, span=self._span_bias(shape))
        branches = {"then_branch": far.subgraph("far", bound), "else_branch": near.subgraph("near", free)}
        return builder.add("If", [self._is_longer(min(shape.before, shape.after) + 1)], **branches)

    def _span_bias(self, shape: AttentionShape) -> str:
        """Write the (1, 1, S, S) bias that hides what is out of the span; for long texts only a corner of it, which nobody reads."""
        span = (shape.before, shape.after)
        if span not in self._spans:
            self._spans[span] = write_span(self.builder, self.builder.add("Min", [self._longest, self.builder.constant(SHORT_TEXT)]), shape)
        return self._spans[span]

    def _attend_all(
        self,
        builder: GraphBuilder,
        q: str,
        k: str,
        v: str,
        shape: AttentionShape,
        *,
        first_only: bool,
        bias: ScoreBias | None,
        span: str = "",
    ) -> str:
        scores = span or self._bias
        if scores and first_only:
            scores = builder.add("Slice", [scores, builder.constant([0]), builder.constant([1]), builder.constant([2])])
        if first_only and not shape.sees_all:
            scores = write_first_span(builder, self._longest, shape)
        equal, unequal = builder.branch(), builder.branch()
        same = self._attend_equal(equal, q, k, v, shape, scores, first_only, bias)
        mixed = self._attend_unequal(unequal, q, k, v, shape, scores, first_only, bias)
        branches = {"then_branch": unequal.subgraph("unequal", mixed), "else_branch": equal.subgraph("equal", same)}
        return builder.add("If", ["padded"], **branches)

    def _attend_equal(
        self, builder: GraphBuilder, q: str, k: str, v: str, shape: AttentionShape, scores: str, first_only: bool, bias: ScoreBias | None
    ) -> str:
        width = shape.width
        grid = builder.add("Concat", [self._grid, builder.constant([width])], axis=0)
        query_grid = builder.constant([-1, 1, width]) if first_only else grid
        query, key, value = (builder.add("Reshape", [x, to]) for x, to in ((q, query_grid), (k, grid), (v, grid)))
        scores = self._add_bias(builder, query, key, scores, bias, first_only=first_only)
        out = _attend(builder, [query, key, value, "", "", scores], shape)
        return builder.add("Reshape", [out, builder.constant([-1, width])])

    def _attend_unequal(
        self, builder: GraphBuilder, q: str, k: str, v: str, shape: AttentionShape, scores: str, first_only: bool, bias: ScoreBias | None
    ) -> str:
        if first_only or scores or bias is not None:
            return self._attend_grid(builder, q, k, v, shape, scores, first_only, bias)
        short, long = builder.branch(), builder.branch()
        whole = self._attend_grid(short, q, k, v, shape, scores, first_only, bias)
        blocks = self._blocked.write(q, k, v, shape, None, builder=long)
        branches = {"then_branch": long.subgraph("long", blocks), "else_branch": short.subgraph("short", whole)}
        return builder.add("If", [self._is_longer(LONG_TEXT)], **branches)

    def _attend_grid(
        self, builder: GraphBuilder, q: str, k: str, v: str, shape: AttentionShape, scores: str, first_only: bool, bias: ScoreBias | None
    ) -> str:
        width = shape.width
        query = builder.add("Reshape", [q, builder.constant([-1, 1, width])]) if first_only else builder.add("Gather", [q, self.slots])
        key, value = builder.add("Gather", [k, self.slots]), builder.add("Gather", [v, self.slots])
        scores = self._add_bias(builder, query, key, scores, bias, first_only=first_only)
        out = _attend(builder, [query, key, value, "", "mask", scores], shape)
        flat = builder.add("Reshape", [out, builder.constant([-1, width])])
        return flat if first_only else builder.add("Gather", [flat, "rows"])

    def _add_bias(self, builder: GraphBuilder, query: str, key: str, scores: str, bias: ScoreBias | None, *, first_only: bool) -> str:
        """Add the bias of the scores of all tokens, or of the first ones."""
        if bias is None:
            return scores
        places = builder.add("Range", [builder.constant(0), self._longest, builder.constant(1)])
        added = bias.write(builder, query, key, builder.constant([0]) if first_only else places, places)
        return builder.add("Add", [scores, added]) if scores else added

    def _is_longer(self, tokens: int) -> str:
        """Write whether the longest text has more tokens than this."""
        if tokens not in self._tests:
            self._tests[tokens] = self.builder.add("Greater", [self._longest, self.builder.constant(tokens)])
        return self._tests[tokens]


def _attend(builder: GraphBuilder, inputs: list[str], shape: AttentionShape) -> str:
    return builder.add("MultiHeadAttention", _trim(*inputs), domain=MICROSOFT, num_heads=shape.heads, scale=shape.scale)


SHORT_TEXT = 256
"""Up to so many tokens, local and causal layers and relative positions are cheaper without a loop over blocks."""
LONG_TEXT = 1_024
"""In batches of unequal lengths, longer texts are attended to in blocks. Equal ones need not: their operator keeps no scores."""


class PaddedLayout:
    """The batch as it comes from any tokenizer, padded on the right; standard operators only."""

    portable = True
    rows, mask = "", ""

    def __init__(self, builder: GraphBuilder, *, first_position: int) -> None:
        self.builder = builder
        self._grid = builder.add("Shape", ["input_ids"])
        self._longest = builder.add("Gather", [self._grid, builder.constant(1)])
        self.ids = builder.add("Reshape", ["input_ids", builder.constant([-1])])
        total = builder.add("ReduceProd", [self._grid], keepdims=0)
        counted = builder.add("Range", [builder.constant(0), total, builder.constant(1)])
        self.slots = builder.add("Reshape", [counted, self._grid])
        self.positions = builder.add("Add", [builder.add("Mod", [counted, self._longest]), builder.constant(first_position)])
        self.pool_mask = builder.add("Cast", ["attention_mask"], to=FLOAT)
        hidden = builder.add(
            "Mul", [builder.add("Sub", [builder.constant(1, np.float32), self.pool_mask]), builder.constant(-1e9, np.float32)]
        )
        self._score_bias = builder.add("Unsqueeze", [hidden, builder.constant([1, 2])])
        self._first_bias = self._score_bias

    def first_rows(self) -> str:
        """Take the first column of the grid."""
        return self.builder.add("Gather", [self.slots, self.builder.constant(0)], axis=1)

    def set_relative_bias(self, table_RN: Floats) -> None:
        """Add the relative bias to the padding's."""
        bias = _add_relative_bias(self.builder, self._longest, table_RN)
        first = self.builder.add("Slice", [bias, self.builder.constant([0]), self.builder.constant([1]), self.builder.constant([2])])
        self._first_bias = self.builder.add("Add", [self._score_bias, first])
        self._score_bias = self.builder.add("Add", [self._score_bias, bias])

    def attend(self, q: str, k: str, v: str, *, shape: AttentionShape, first_only: bool, bias: ScoreBias | None = None) -> str:
        """Write softmax(q kᵀ / √d + bias) v."""
        assert shape.sees_all  # write_encoder refuses other families
        assert bias is None
        builder, heads, size, width = self.builder, shape.heads, shape.size, shape.width
        query = builder.add(
            "Mul", [self._by_head(q, heads, size, rows=1 if first_only else None), builder.constant(shape.scale, np.float32)]
        )
        key = self._by_head(k, heads, size, rows=None, transposed=True)
        scores = builder.add("Add", [builder.add("MatMul", [query, key]), self._first_bias if first_only else self._score_bias])
        out = builder.add("MatMul", [builder.add("Softmax", [scores], axis=-1), self._by_head(v, heads, size, rows=None)])
        return builder.add("Reshape", [builder.add("Transpose", [out], perm=[0, 2, 1, 3]), builder.constant([-1, width])])

    def _by_head(self, x: str, heads: int, size: int, *, rows: int | None, transposed: bool = False) -> str:
        builder = self.builder
        tokens = builder.constant([1]) if rows == 1 else builder.add("Unsqueeze", [self._longest, builder.constant([0])])
        shape = builder.add("Concat", [builder.constant([-1]), tokens, builder.constant([heads, size])], axis=0)
        return builder.add("Transpose", [builder.add("Reshape", [x, shape])], perm=[0, 2, 3, 1] if transposed else [0, 2, 1, 3])


def _add_relative_bias(builder: GraphBuilder, longest: str, table_RN: Floats) -> str:
    """Write the (1, N, S, S) bias of a relative position table."""
    places = builder.add("Range", [builder.constant(0), longest, builder.constant(1)])
    keys, queries = builder.add("Unsqueeze", [places, builder.constant([0])]), builder.add("Unsqueeze", [places, builder.constant([1])])
    distance = builder.add("Add", [builder.add("Sub", [keys, queries]), builder.constant(table_RN.shape[0] // 2)])
    bias_SSN = builder.add("Gather", [builder.array("relative_bias", table_RN), distance])
    return builder.add("Unsqueeze", [builder.add("Transpose", [bias_SSN], perm=[2, 0, 1]), builder.constant([0])])


def _trim(*inputs: str) -> list[str]:
    """Drop left-out inputs at the end, where ONNX wants them absent rather than empty."""
    kept = list(inputs)
    while kept and not kept[-1]:
        kept.pop()
    return kept
