"""A model folder and texts → the same model with only the pieces that such texts need.

Vectors of a text whose pieces are all kept do not change: its pieces are the same, their rows are the same. That is checked before anything
is written. Other text of the kept scripts is cut into smaller pieces, at worst into single characters; what has no piece at all becomes the
unknown piece, as before.

Shapes: V pieces, K kept pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from munjang.engine.modules import TransformerModule
from munjang.errors import FolderError, MunjangError, UsageError
from munjang.models.compress.cut_tokenizer import (
    PieceChoice,
    choose_pieces,
    cut_tokenizer,
    find_algorithm,
    list_pieces,
    list_pieces_before_failure,
)
from munjang.models.compress.parts import ModelParts, read_parts, write_parts
from munjang.options import Option
from munjang.text.tokenizer import Tokenizer
from munjang.text.unicode import find_scripts
from munjang.text.validate_texts import validate_texts
from munjang.types import Ints

BLOCK = 4_096
"""Texts that are cut at once."""

CHECKED = 20_000
"""Texts that are cut by both tokenizers and compared."""

ROWS_PER_PIECE = (
    "lm_head.bias",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "predictions.bias",
    "predictions.decoder.weight",
    "predictions.decoder.bias",
    "generator_lm_head.weight",
    "generator_lm_head.bias",
    "vocab_projector.weight",
    "vocab_projector.bias",
)
"""How tensors of masked-language-model heads end that have one row per piece, like the word embeddings."""


@dataclass(frozen=True)
class PruneOptions:
    """Which pieces to keep."""

    scripts: Annotated[Sequence[str], Option("Codes of the languages whose characters are kept.", commas=True)] = ("ko", "en")
    """Language codes; the order decides which language's pieces fill the room that is left."""
    minimum_count: Annotated[int, Option("Minimum number of times the texts use a token.", min=1)] = 1
    size: Annotated[int | None, Option("Keep this many tokens, the most useful ones.", min=1, flags=("--vocabulary",))] = None
    """Without it, as many as the texts use."""


@dataclass(frozen=True)
class Pruned:
    """What pruning did."""

    pieces_before: int
    pieces_after: int
    used: int
    dropped_used: int
    filled: int
    texts: int
    texts_unchanged: int
    """Texts all of whose pieces were kept: their vectors are unchanged."""
    tokens: int
    tokens_kept: int


def prune_vocabulary(folder: Path, target: Path, texts: Sequence[str], *, options: PruneOptions | None = None) -> Pruned:
    """Write `folder`'s model to `target` with the pieces that `texts` and the scripts need."""
    parts, report = prune_parts(read_parts(folder), texts, options=options or PruneOptions())
    write_parts(parts, target)
    return report


def prune_parts(parts: ModelParts, texts: Sequence[str], *, options: PruneOptions) -> tuple[ModelParts, Pruned]:
    """Return the parts with a smaller vocabulary, and what was done."""
    scripts, texts = find_scripts(options.scripts), validate_texts(texts)
    if not texts:
        raise UsageError("no texts to prune the vocabulary to; give the texts that the model will read, or some like them")
    algorithm = find_algorithm(parts.tokenizer)
    if "mapping" in parts.tensors or "weights" in parts.tensors:
        raise FolderError(f"{parts.folder.path}: a static model whose pieces share rows or have weights cannot be pruned")
    tokenizer = Tokenizer(parts.tokenizer)
    pieces = list_pieces(parts.tokenizer, special=tokenizer.special_ids, padding=tokenizer.pad_id)
    rows = parts.tensors[parts.word_table].shape[0]
    if len(pieces.texts_V) > rows:
        raise FolderError(f"{parts.folder.path}: {rows:,} word embeddings, but the tokenizer has {len(pieces.texts_V):,} pieces")
    lowered = isinstance(parts.base, TransformerModule) and parts.base.lowercase
    counts_V = _count_pieces(tokenizer, texts, len(pieces.texts_V), lowered=lowered)
    in_prompts = {number for prompt in parts.folder.prompts.values() for number in tokenizer.encode([prompt])[0]}
    pieces = replace(pieces, always=pieces.always | in_prompts)
    if algorithm == "WordPiece" and tokenizer.unk_id is not None and counts_V[tokenizer.unk_id]:
        failing = [text for text, ids in _cut(tokenizer, texts, lowered) if tokenizer.unk_id in ids]
        np.add.at(counts_V, np.fromiter(list_pieces_before_failure(parts.tokenizer, failing), np.int64), 1)
    choice = choose_pieces(pieces, counts_V, scripts=scripts, minimum_count=options.minimum_count, size=options.size)
    new_number = {int(old): new for new, old in enumerate(choice.kept_K)}
    smaller = _cut_parts(parts, choice, new_number)
    unchanged = _check_equal_cuts(tokenizer, Tokenizer(smaller.tokenizer), new_number, texts, lowered)
    report = Pruned(
        pieces_before=rows,
        pieces_after=len(choice.kept_K),
        used=choice.used,
        dropped_used=choice.dropped_used,
        filled=choice.filled,
        texts=len(texts),
        texts_unchanged=unchanged,
        tokens=int(counts_V.sum()),
        tokens_kept=int(counts_V[choice.kept_K].sum()),
    )
    return smaller, report


def _cut(tokenizer: Tokenizer, texts: Iterable[str], lowered: bool) -> Iterable[tuple[str, list[int]]]:
    waiting = iter(texts)
    while block := list(islice(waiting, BLOCK)):
        block = [text.lower() for text in block] if lowered else block
        yield from zip(block, tokenizer.encode(block), strict=True)


def _count_pieces(tokenizer: Tokenizer, texts: Iterable[str], size: int, *, lowered: bool) -> Ints:
    counts = Counter(number for _, ids in _cut(tokenizer, texts, lowered) for number in ids)
    counts_V = np.zeros(size, np.int64)
    counts_V[list(counts)] = list(counts.values())
    return counts_V


def _cut_parts(parts: ModelParts, choice: PieceChoice, new_number: Mapping[int, int]) -> ModelParts:
    rows = parts.tensors[parts.word_table].shape[0]

    def cut(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
        per_piece = name == parts.word_table or (name.endswith(ROWS_PER_PIECE) and tensor.shape[0] == rows)
        return tensor[choice.kept_K] if per_piece else tensor

    tensors = {name: cut(name, tensor) for name, tensor in parts.tensors.items()}
    smaller = replace(parts, tensors=tensors, tokenizer=cut_tokenizer(parts.tokenizer, new_number))
    if not isinstance(parts.base, TransformerModule):
        return smaller
    config = {**parts.base.config, "vocab_size": len(choice.kept_K)}
    for key, number in parts.base.config.items():
        if key.endswith("_token_id") and isinstance(number, int):
            if number in new_number:
                config[key] = new_number[number]
            else:  # a number left over from another vocabulary
                del config[key]
    return smaller.with_config(config)


def _check_equal_cuts(old: Tokenizer, new: Tokenizer, new_number: Mapping[int, int], texts: Sequence[str], lowered: bool) -> int:
    """Return how many texts keep all pieces, and make sure that the first of them are cut as before."""
    unchanged = 0
    waiting: list[tuple[str, list[int]]] = []
    for text, ids in _cut(old, texts, lowered):
        expected = [new_number.get(number, -1) for number in ids]
        if -1 not in expected:
            unchanged += 1
            if len(waiting) < CHECKED:
                waiting.append((text, expected))
    found = new.encode([text for text, _ in waiting])
    wrong = sum(ids != expected for ids, (_, expected) in zip(found, waiting, strict=True))
    if wrong:
        raise MunjangError(f"{wrong:,} of {len(waiting):,} texts whose tokens are all kept are tokenized differently; nothing was written")
    return unchanged
