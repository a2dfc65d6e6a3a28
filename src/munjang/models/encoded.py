"""What one call of encode asks for, what it gives back, and how blocks and windows are put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.models.long_text import LongText
from munjang.types import Precision, Vectors
from munjang.vectors.quantize import quantize
from munjang.vectors.similarity import normalize as unit
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class Encoded:
    """Vectors, and what happened on the way."""

    vectors: Vectors
    tokens: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Tokens of each text before any cut, special tokens included."""
    too_long: list[int]
    """Indices of the texts that were longer than the model's limit."""


@brief_repr
@dataclass(frozen=True)
class TokenVectors:
    """One text's tokens and the hidden state of each."""

    tokens: list[str]
    ids: list[int]
    vectors: Vectors


@dataclass(frozen=True)
class EncodeOptions:
    """What one call of encode asks for."""

    prompt: str
    hidden_prefix: int
    long_text: LongText
    precision: Precision
    dimensions: int | None
    normalize: bool
    warn: bool = True


def joined(blocks: list[Encoded], dimension: int, options: EncodeOptions) -> Encoded:
    """Put blocks one behind the other; no blocks give no rows of the right width."""
    if not blocks:
        width = options.dimensions or dimension
        return Encoded(quantize(np.zeros((0, width), np.float32), options.precision), np.zeros(0, np.int64), [])
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0, *(len(block.tokens) for block in blocks)])
    return Encoded(
        vectors=np.concatenate([block.vectors for block in blocks]),
        tokens=np.concatenate([block.tokens for block in blocks]),
        too_long=[int(start) + number for start, block in zip(starts, blocks, strict=False) for number in block.too_long],
    )


def average_windows(vectors: Vectors, ids: list[list[int]], owner: list[int], texts: int, *, normalized: bool) -> Vectors:
    """Average the windows of each text, longer windows counting more."""
    weights = np.fromiter((max(len(one), 1) for one in ids), np.float32, len(ids))
    total, weight = np.zeros((texts, vectors.shape[1]), np.float32), np.zeros(texts, np.float32)
    np.add.at(total, owner, vectors * weights[:, None])
    np.add.at(weight, owner, weights)
    mean: Vectors = total / weight[:, None]
    return unit(mean) if normalized else mean
