"""A folder, its tokenizer and its weights → whether they belong together, and how many tokens one text may have.

Checked while a model is loaded, so that no text meets a model that cannot read it.
"""

from __future__ import annotations

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import StaticModule
from munjang.engine.transformer import Compute
from munjang.errors import FolderError, UsageError
from munjang.text.tokenizer import Tokenizer


def check_compute(compute: Compute) -> None:
    """Refuse a kind of arithmetic that the engine does not have."""
    if compute not in ("float32", "int8"):
        raise UsageError(f"compute={compute!r} is unknown; expected 'float32' or 'int8'")


def check_vocabulary(folder: ModelFolder, tokenizer: Tokenizer, vocabulary_size: int) -> None:
    """Refuse a tokenizer whose ids go beyond the weights."""
    highest = max(tokenizer.highest_id, *tokenizer.wrap([]), 0)
    if highest >= vocabulary_size:
        raise FolderError(
            f"{folder.path}: the tokenizer has ids up to {highest:,}, the weights know {vocabulary_size:,} pieces; "
            "they do not belong together"
        )


def token_limit(folder: ModelFolder, tokenizer: Tokenizer, *, positions: int | None, asked: int | None) -> int | None:
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
