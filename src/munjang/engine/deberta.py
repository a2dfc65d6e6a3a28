"""What a DeBERTa v2 or v3 folder holds beyond a BERT's: tables of relative positions, their buckets, a convolution.

Comes in: the reader of a folder. Goes out: arrays that the graph's writer needs (`disentangled.py`), with shapes checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.disentangled import RelativeTables, compute_buckets
from munjang.engine.modules import Activation
from munjang.engine.tensor_reader import Linear, Norm, TensorReader
from munjang.errors import FolderError, quote
from munjang.types import Floats, Ints

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
