"""A block of texts → their vectors, in the caller's order.

In: texts, and what the call of encode asks for. Out: `Encoded`. Equal texts are encoded once; each is tokenised, made to fit the model's
limit, and run with others of like length. Going through many blocks, and warning of texts that were cut, are left to `SentenceEncoder`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import StaticModule
from munjang.engine.open import Engine
from munjang.errors import FolderError, UsageError
from munjang.models.long_text import LongText, fit_texts
from munjang.models.progress import Advance
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer
from munjang.types import Precision, Vectors
from munjang.vectors.quantize import quantize
from munjang.vectors.similarity import normalize as unit
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class Encoded:
    """Vectors, with the number of tokens of each text and which texts were too long."""

    vectors: Vectors
    tokens: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Tokens of each text before truncation, including special tokens."""
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


def join_blocks(blocks: list[Encoded], dimension: int, options: EncodeOptions) -> Encoded:
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


def check_vocabulary(folder: ModelFolder, tokenizer: Tokenizer, vocabulary_size: int) -> None:
    """Refuse a tokenizer whose ids go beyond the weights."""
    highest = max(tokenizer.highest_id, *tokenizer.wrap([]), 0)
    if highest >= vocabulary_size:
        raise FolderError(
            f"{folder.path}: the tokenizer has ids up to {highest:,}, the weights know {vocabulary_size:,} pieces; "
            "they do not belong together"
        )


def find_token_limit(folder: ModelFolder, tokenizer: Tokenizer, *, positions: int | None, asked: int | None) -> int | None:
    """Return how many tokens one text may have, special ones included; None where nothing limits them.

    `positions` is what the weights have room for, `asked` what the caller wants at most.
    """
    own = folder.max_length or tokenizer.max_length
    known = [limit for limit in (own, positions, asked) if limit is not None]
    if asked is not None and asked <= tokenizer.special_count:
        raise UsageError(f"max_length={asked} leaves no room for text: {tokenizer.special_count} tokens are special ones")
    if isinstance(folder.base, StaticModule):
        return asked
    if known and min(known) <= tokenizer.special_count:
        raise FolderError(
            f"{folder.path}: room for {min(known)} tokens, of which {tokenizer.special_count} are special; none is left for text"
        )
    return min(known) if known else None


@dataclass(frozen=True)
class BlockEncoder:
    """Encodes blocks of texts with one model."""

    tokenizer: Tokenizer
    engine: Engine
    max_length: int | None
    is_static: bool
    """A static model reads no special tokens."""
    lowercase: bool
    normalized: bool
    """Whether the model gives vectors of length one, so that an average of windows must have it too."""

    def encode(self, texts: list[str], options: EncodeOptions, advance: Advance) -> Encoded:
        """Return the vector of each text; `advance` hears of every batch that is done."""
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        index = np.fromiter((place[text] for text in texts), np.int64, len(texts))
        ids = self.token_ids([options.prompt + text for text in place] if options.prompt else list(place))
        pieces = fit_texts(ids, self.tokenizer, limit=self.max_length, policy=options.long_text)
        vectors = self._vectors(pieces.ids, options, advance, share=len(texts) / len(pieces.ids))
        if len(pieces.ids) > len(ids):
            vectors = average_windows(vectors, pieces.ids, pieces.owner, len(ids), normalized=self.normalized)
        if options.dimensions:
            vectors = vectors[:, : options.dimensions]
        if options.normalize:
            vectors = unit(vectors)
        lengths = np.fromiter((len(one) for one in ids), np.int64, len(ids))
        long = set(pieces.too_long)
        return Encoded(
            vectors=quantize(vectors[index], options.precision),
            tokens=lengths[index],
            too_long=[number for number, owner in enumerate(index.tolist()) if owner in long] if long else [],
        )

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """Return each text's ids as the model reads them, before any cut."""
        if self.lowercase:
            texts = [text.lower() for text in texts]
        return self.tokenizer.encode_plain(texts) if self.is_static else self.tokenizer.encode(texts)

    def _vectors(self, ids: list[list[int]], options: EncodeOptions, advance: Advance, *, share: float) -> Vectors:
        """Return one row per piece; `share` is how many of the caller's texts a piece stands for."""
        vectors = np.zeros((len(ids), self.engine.dimension), np.float32)
        place = self.engine.placement
        batches = plan_batches([len(one) for one in ids], budget=place.batch_tokens, efficient=place.efficient_tokens)
        if not self.is_static:
            batches = [kept for batch in batches if (kept := [number for number in batch if ids[number]])]
        groups = [[ids[number] for number in batch] for batch in batches]
        for batch, rows in zip(batches, self.engine.vectors_of_batches(groups, hidden_prefix=options.hidden_prefix), strict=True):
            vectors[batch] = rows
            advance(round(len(batch) * share))
        return vectors
