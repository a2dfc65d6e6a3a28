"""What a call of encode asks for, checked against the model that it is asked of."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import PoolingModule, StaticModule
from munjang.errors import UsageError
from munjang.models.batch_encoder import TokenOptions, check_skip
from munjang.text.tokenizer import Tokenizer
from munjang.types import LongText, SkippedTokens


def find_hidden_prefix(folder: ModelFolder, tokenizer: Tokenizer, prompt: str) -> int:
    """Return how many tokens in front do not count in the sentence vector: the prompt's, where the model leaves it out of pooling."""
    keeps_prompt = all(module.include_prompt for module in folder.modules if isinstance(module, PoolingModule))
    return tokenizer.prefix_length(prompt) if prompt and not keeps_prompt else 0


def check_options(long_text: LongText, dimensions: int | None, *, width: int, hidden: int) -> None:
    """Refuse a policy that there is not, one that cannot hide a prompt, and more dimensions than a vector has."""
    if long_text not in get_args(LongText):
        raise UsageError(f"long_text={long_text!r} is unknown; expected 'truncate', 'window' or 'error'")
    if hidden and long_text == "window":
        raise UsageError("this model leaves its prompt out of pooling, which windows cannot do; choose long_text='truncate' or 'error'")
    if dimensions is not None and not 1 <= dimensions <= width:
        raise UsageError(f"dimensions={dimensions}, expected 1 to {width}")


def choose_token_options(folder: ModelFolder, tokenizer: Tokenizer, prompt: str, skip: Collection[SkippedTokens]) -> TokenOptions:
    """Return what a call of encode_tokens asks for."""
    end = 0
    if prompt:
        is_static = isinstance(folder.base, StaticModule)
        end = len(tokenizer.encode_plain([prompt])[0]) if is_static else tokenizer.prefix_length(prompt)
    return TokenOptions(prompt, end, end if find_hidden_prefix(folder, tokenizer, prompt) else 0, check_skip(skip))
