"""DeBERTa's relative positions: the tables of a v2 or v3 folder, and the nodes that add them to the scores of attention.

A query is multiplied with the table row of its distance to each key, and so is a key. Distances are put into buckets: near ones exactly,
far ones ever more coarsely. A layer's tables, buckets times head, are computed once, when the graph is written. Queries and keys are
multiplied with the rows of every distance that a block has, and the products moved to their places by reading them with another row
length: that is four times as fast as picking each by its index. Some folders hold a convolution too.

Shapes: B texts, C queries, L keys, N heads, H numbers of a head, R buckets, D = N × H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.modules import Activation
from munjang.engine.onnxgraph import GraphBuilder
from munjang.engine.tensor_reader import Linear, Norm, TensorReader
from munjang.errors import FolderError, quote
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

    def __init__(self, builder: GraphBuilder, tables: RelativeTables, *, heads: int, buckets: str, middle: int, name: str) -> None:
        self.heads, self.buckets, self.middle = heads, buckets, middle
        self.keys = self._keep(builder, tables.keys_RD, f"{name}.relative_keys")
        self.queries = self._keep(builder, tables.queries_RD, f"{name}.relative_queries")

    def _keep(self, builder: GraphBuilder, table_RD: Floats | None, name: str) -> str:
        return "" if table_RD is None else builder.array(name, table_RD)

    def write(self, builder: GraphBuilder, query: str, key: str, query_places: str, key_places: str) -> str:
        """Return the sum of both terms, (B, N, C, L)."""
        queries, keys = builder.add("Shape", [query_places]), builder.add("Shape", [key_places])
        start, first = (builder.add("Gather", [places, builder.constant(0)]) for places in (query_places, key_places))
        between = builder.add("Sub", [start, first])
        terms = []
        if self.keys:
            terms.append(self._write_term(builder, query, self.keys, between, queries, keys, sign=-1))
        if self.queries:
            by_key = self._write_term(builder, key, self.queries, between, keys, queries, sign=1)  # (B, N, L, C)
            terms.append(builder.add("Transpose", [by_key], perm=[0, 1, 3, 2]))
        return terms[0] if len(terms) == 1 else builder.add("Add", terms)

    def _write_term(self, builder: GraphBuilder, x: str, table: str, between: str, rows: str, columns: str, *, sign: int) -> str:
        """Multiply rows of `x` with the tables' rows of every distance between a row and a column, and put each product in its column.

        Row r has the distance of column c at place c − r + rows − 1, so that it reads one place further left than the row before: read
        with rows of one number less, the products stand in their columns. One place more than there are distances keeps them apart.
        """
        one = builder.constant([1])
        width = builder.add("Add", [rows, columns])
        apart = builder.add("Sub", [width, one])
        shift = builder.add("Sub", [rows, one])
        count = builder.add("Range", [builder.constant(0), builder.add("Squeeze", [width, builder.constant([0])]), builder.constant(1)])
        steps = builder.add("Sub", [count, shift] if sign > 0 else [shift, count])  # how far the row stands behind the column
        distance = builder.add("Add", [steps, between])
        known = builder.add(
            "Max", [builder.add("Min", [distance, builder.constant(self.middle)]), builder.constant(-self.middle)]
        )  # others are not read
        chosen = builder.add(
            "Gather", [table, builder.add("Gather", [self.buckets, builder.add("Add", [known, builder.constant(self.middle)])])]
        )
        heads = builder.add("Reshape", [chosen, builder.constant([0, self.heads, -1])])
        texts_and_places = builder.add("Slice", [builder.add("Shape", [x]), builder.constant([0]), builder.constant([2])])
        split = builder.add("Reshape", [x, builder.add("Concat", [texts_and_places, builder.constant([self.heads, -1])], axis=0)])
        by_head = builder.add("Transpose", [split], perm=[0, 2, 1, 3])  # (B, N, rows, H)
        product = builder.add("MatMul", [by_head, builder.add("Transpose", [heads], perm=[1, 2, 0])])
        flat = builder.add("Reshape", [product, builder.constant([0, 0, -1])])
        stop = builder.add("Add", [shift, builder.add("Mul", [rows, apart])])
        shifted = builder.add("Slice", [flat, shift, stop, builder.constant([2])])
        square = builder.add("Reshape", [shifted, builder.add("Concat", [builder.constant([0, 0, -1]), apart], axis=0)])
        return builder.add("Slice", [square, builder.constant([0]), columns, builder.constant([3])])


FARTHEST = 100_000
CONVOLVED = "encoder.conv.conv"


@dataclass(frozen=True)
class Convolution:
    """A convolution over the embeddings, added to the first layer's output and normed."""

    w_DGK: Floats
    """D outputs, inputs of one group, kernel."""
    b: Floats
    norm: Norm
    activation: Activation
    groups: int


@dataclass(frozen=True)
class RelativePositions:
    """The embeddings of relative positions and how a distance finds its row."""

    rows_RD: Floats
    buckets: Ints
    terms: tuple[str, ...]
    """"c2p", a query times a distance, and "p2c", a distance times a key."""
    shares_projections: bool


def read_terms(reader: TensorReader) -> tuple[str, ...]:
    """Return which relative terms the scores have."""
    named = reader.config.get("pos_att_type") or []
    terms = tuple(part.strip() for part in named.lower().split("|")) if isinstance(named, str) else tuple(map(str, named))
    if not isinstance(named, str | list) or any(term not in ("c2p", "p2c") for term in terms):
        raise FolderError(f"{reader.config_file}: pos_att_type is {quote(str(named))}, expected c2p and p2c")
    return terms


def read_relative_positions(reader: TensorReader, *, width: int, longest: int) -> RelativePositions | None:
    """Return the shared part of all layers' relative positions, or None for a model without."""
    if not reader.flag("relative_attention"):
        return None
    terms = read_terms(reader)
    farthest = _read_count(reader, "max_relative_positions")
    farthest = reader.size("max_position_embeddings") if farthest < 1 else farthest
    buckets = max(_read_count(reader, "position_buckets"), 0)
    if buckets in (1, 2, 3) or (buckets and farthest - 1 <= buckets // 2):
        raise FolderError(f"{reader.config_file}: {buckets} position_buckets do not fit {farthest} relative positions")
    rows = 2 * (buckets or farthest)
    table = reader.table("encoder.rel_embeddings.weight", width)
    if len(table) < rows:
        raise FolderError(f"{reader.where}: encoder.rel_embeddings.weight has {len(table)} rows, expected {rows}")
    norms = str(reader.config.get("norm_rel_ebd", "none")).lower()
    if "layer_norm" in [part.strip() for part in norms.split("|")]:
        table = _apply_norm(table, reader.norm("encoder.LayerNorm", width))
    shares = reader.flag("share_att_key")
    return RelativePositions(table[:rows], compute_buckets(longest, buckets=buckets, farthest=farthest), terms, shares)


def compute_tables(
    reader: TensorReader, at: str, positions: RelativePositions, *, query: Linear, key: Linear, scale: float
) -> RelativeTables:
    """Return one layer's tables; `at` begins the layer's names."""
    tables: dict[str, Floats | None] = {"c2p": None, "p2c": None}
    for term, shared, own in (("c2p", key, "pos_key_proj"), ("p2c", query, "pos_query_proj")):
        if term in positions.terms:
            linear = shared if positions.shares_projections else reader.linear(f"{at}attention.self.{own}")
            if linear.w.shape != query.w.shape:
                raise FolderError(f"{reader.where}: {at}attention.self.{own} has shape {linear.w.shape}, expected {query.w.shape}")
            tables[term] = ((positions.rows_RD @ linear.w + linear.b) * np.float32(scale)).astype(np.float32)
    return RelativeTables(keys_RD=tables["c2p"], queries_RD=tables["p2c"])


def read_convolution(reader: TensorReader, width: int) -> Convolution | None:
    """Return the convolution, or None for a model without."""
    kernel = reader.whole("conv_kernel_size", default=0)
    if not kernel:
        return None
    groups = reader.size("conv_groups", default=1)
    w, b = reader.tensor(CONVOLVED + ".weight"), reader.tensor(CONVOLVED + ".bias")
    if kernel % 2 == 0 or width % groups or w.shape != (width, width // groups, kernel) or b.shape != (width,):
        raise FolderError(f"{reader.where}: {CONVOLVED} has shapes {w.shape} and {b.shape}, which its settings do not describe")
    activation = reader.activation("conv_act") if "conv_act" in reader.config else "tanh"
    return Convolution(w, b, reader.norm("encoder.conv.LayerNorm", width), activation, groups)


def _read_count(reader: TensorReader, key: str) -> int:
    value = reader.config.get(key, -1)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= FARTHEST:
        raise FolderError(f"{reader.config_file}: {key} is {quote(str(value))}, expected -1 or a whole number up to {FARTHEST:,}")
    return value


def _apply_norm(rows: Floats, norm: Norm) -> Floats:
    """Normalise rows as a layer norm does."""
    mean, spread = rows.mean(axis=1, keepdims=True, dtype=np.float64), rows.var(axis=1, keepdims=True, dtype=np.float64)
    normed: Floats = ((rows - mean) / np.sqrt(spread + norm.epsilon) * norm.w + norm.b).astype(np.float32)
    return normed
