"""Texts, a block at a time → their vectors, in the caller's order.

In: texts, and what the call of encode asks for. Out: `Encoded`. Equal texts of a block are encoded once; each is tokenised, made to fit the
model's limit, and run with others of like length.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import PoolingModule, StaticModule
from munjang.engine.open import Engine
from munjang.errors import FolderError, UsageError
from munjang.models.long_text import fit_texts, warn_of_cut
from munjang.models.progress import Advance
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer
from munjang.types import LongText, Precision, SkippedTokens, Vectors
from munjang.vectors.quantize import quantize
from munjang.vectors.similarity import normalize as unit
from munjang.wording import brief_repr


def find_hidden_prefix(folder: ModelFolder, tokenizer: Tokenizer, prompt: str) -> int:
    """Return how many tokens in front do not count in the sentence vector: the prompt's, where the model leaves it out of pooling."""
    keeps_prompt = all(module.include_prompt for module in folder.modules if isinstance(module, PoolingModule))
    return tokenizer.prefix_length(prompt) if prompt and not keeps_prompt else 0


def check_options(options: EncodeOptions, *, width: int) -> EncodeOptions:
    """Refuse a policy that there is not, one that cannot hide a prompt, and more dimensions than a vector has."""
    if options.long_text not in get_args(LongText):
        raise UsageError(f"long_text={options.long_text!r} is unknown; expected 'truncate', 'window' or 'error'")
    if options.hidden_prefix and options.long_text == "window":
        raise UsageError("this model leaves its prompt out of pooling, which windows cannot do; choose long_text='truncate' or 'error'")
    if options.dimensions is not None and not 1 <= options.dimensions <= width:
        raise UsageError(f"dimensions={options.dimensions}, expected 1 to {width}")
    return options


def choose_token_options(folder: ModelFolder, tokenizer: Tokenizer, prompt: str, skip: Collection[SkippedTokens]) -> TokenOptions:
    """Return what a call of encode_tokens asks for."""
    end = 0
    if prompt:
        is_static = isinstance(folder.base, StaticModule)
        end = len(tokenizer.encode_plain([prompt])[0]) if is_static else tokenizer.prefix_length(prompt)
    return TokenOptions(prompt, end, end if find_hidden_prefix(folder, tokenizer, prompt) else 0, check_skip(skip))


Kept = TypeVar("Kept")


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
    """One text's tokens and the hidden state of each, without those that were to be skipped."""

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


@dataclass(frozen=True)
class TokenOptions:
    """What one call of encode_tokens asks for."""

    prompt: str
    prompt_end: int
    """The place of the first token behind the prompt."""
    hidden_prefix: int
    """Tokens in front that do not count in the sentence vector."""
    skip: frozenset[SkippedTokens]


def check_skip(skip: Collection[str]) -> frozenset[SkippedTokens]:
    """Return which tokens to leave out; refuse a kind that does not exist."""
    kinds = [skip] if isinstance(skip, str) else list(skip)
    known: tuple[SkippedTokens, ...] = get_args(SkippedTokens)
    for each in kinds:
        if each not in known:
            raise UsageError(f"skip holds {each!r}; expected {', '.join(map(repr, known))}")
    return frozenset(each for each in known if each in kinds)


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
        return min((limit for limit in (folder.base.max_length, asked) if limit), default=None)
    if known and min(known) <= tokenizer.special_count:
        raise FolderError(
            f"{folder.path}: room for {min(known)} tokens, of which {tokenizer.special_count} are special; none is left for text"
        )
    return min(known) if known else None


def run_tokens(engine: Engine, ids: Sequence[list[int]], *, hidden_prefix: int = 0) -> Iterator[tuple[int, Vectors, Vectors]]:
    """Yield each text's number, vector and token rows as batches are done, in no order; texts without any id are passed over."""
    filled = [number for number, one in enumerate(ids) if one]
    batches = [[filled[at] for at in batch] for batch in plan_batches([len(ids[number]) for number in filled])]
    found = engine.tokens_of_batches([[ids[number] for number in batch] for batch in batches], hidden_prefix=hidden_prefix)
    for batch, (vectors_BD, tokens_TW) in zip(batches, found, strict=True):
        starts = np.cumsum([0, *(len(ids[number]) for number in batch)]).tolist()
        for place, number in enumerate(batch):
            yield number, vectors_BD[place], tokens_TW[starts[place] : starts[place + 1]]


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

    def encode_blocks(
        self, texts: Iterable[str], options: EncodeOptions, block: int, advance: Advance = lambda _: None
    ) -> Iterator[Encoded]:
        """Yield the vectors of `block` texts at a time, then warn of texts that were cut."""
        waiting, seen, cut = iter(texts), 0, 0
        while group := list(islice(waiting, block)):
            encoded = self.encode(group, options, advance)
            seen, cut = seen + len(group), cut + len(encoded.too_long)
            yield encoded
        if cut and options.warn and options.long_text == "truncate":
            advice = "encode_with_report says which; long_text='window' reads all"
            warn_of_cut(cut, seen, self.max_length, in_python=advice, stacklevel=2)

    def encode_token_blocks(
        self,
        texts: Iterable[str],
        options: TokenOptions,
        block: int,
        advance: Advance,
        keep: Callable[[list[int], Vectors], Kept],
    ) -> Iterator[list[Kept]]:
        """Yield what `keep` makes of the tokens of `block` texts at a time, then warn of texts that were cut."""
        waiting, seen, cut = iter(texts), 0, 0
        while group := list(islice(waiting, block)):
            encoded, kept = self.encode_with_tokens(group, options, advance, keep)
            seen, cut = seen + len(group), cut + len(encoded.too_long)
            yield kept
        if cut:
            warn_of_cut(cut, seen, self.max_length, in_python="shorten them, or encode_tokens their parts", stacklevel=4)

    def encode_with_tokens(
        self, texts: list[str], options: TokenOptions, advance: Advance, keep: Callable[[list[int], Vectors], Kept]
    ) -> tuple[Encoded, list[Kept]]:
        """Return the vector of each text, and what `keep` makes of the ids and the rows of its tokens, from the same pass.

        Equal texts share one result. Texts beyond the limit lose their ends.
        """
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        index = np.fromiter((place[text] for text in texts), np.int64, len(texts))
        ids = self.token_ids([options.prompt + text for text in place])
        pieces = fit_texts(ids, self.tokenizer, limit=self.max_length, policy="truncate")
        vectors = np.zeros((len(ids), self.engine.dimension), np.float32)
        kept: list[Kept | None] = [None] * len(ids)
        share = len(texts) / max(len(ids), 1)
        for number, vector_D, rows_TW in run_tokens(self.engine, pieces.ids, hidden_prefix=options.hidden_prefix):
            own = pieces.ids[number]
            chosen = self.choose_tokens(own, options)
            vectors[number] = vector_D
            kept[number] = keep([own[at] for at in chosen], rows_TW[chosen])
            advance(round(share))
        nothing = np.zeros((0, self.engine.hidden_size), np.float32)
        results = [keep([], nothing) if each is None else each for each in kept]
        lengths, long = np.fromiter((len(one) for one in ids), np.int64, len(ids)), set(pieces.too_long)
        too_long = [number for number, owner in enumerate(index.tolist()) if owner in long]
        return Encoded(vectors[index], lengths[index], too_long), [results[owner] for owner in index.tolist()]

    def choose_tokens(self, ids: list[int], options: TokenOptions) -> NDArray[np.int64]:
        """Return the places of the tokens that are not skipped."""
        before, after = (0, 0) if self.is_static else self.tokenizer.special_around
        wanted_T = np.ones(len(ids), bool)
        if "special" in options.skip:
            wanted_T[:before] = False
            wanted_T[len(ids) - after :] = False
        if "prompt" in options.skip and options.prompt:
            wanted_T[before : options.prompt_end] = False
        if "punctuation" in options.skip:
            marks = self.tokenizer.punctuation_ids
            wanted_T &= np.fromiter((number not in marks for number in ids), bool, len(ids))
        return np.flatnonzero(wanted_T)

    def token_places(self, text: str, options: TokenOptions) -> list[tuple[int, int]]:
        """Return which characters of a text each token stands for that `encode_with_tokens` keeps."""
        whole = options.prompt + text
        seen = self.tokenizer.encode_with_offsets(whole.lower() if self.lowercase else whole)
        places = [place for place, special in zip(seen.offsets, seen.special_mask, strict=True) if not (self.is_static and special)]
        ids = [number for number, special in zip(seen.ids, seen.special_mask, strict=True) if not (self.is_static and special)]
        after = 0 if self.is_static else self.tokenizer.special_around[1]
        [fitting] = fit_texts([ids], self.tokenizer, limit=self.max_length, policy="truncate").ids
        if len(fitting) < len(ids):
            places = places[: len(fitting) - after] + places[len(ids) - after :]
        shift = len(options.prompt)
        return [
            (max(start - shift, 0), max(stop - shift, 0)) for start, stop in (places[at] for at in self.choose_tokens(fitting, options))
        ]

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
