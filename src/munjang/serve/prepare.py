"""Texts, or token ids that a client brings along → the ids that the engine gets, and which were too long.

The same steps that `SentenceEncoder.encode` takes before it computes, so that a served vector equals an offline one. Nothing is computed
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from munjang.engine.modules import PoolingModule, StaticModule, TransformerModule
from munjang.errors import UsageError, shown
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.refusals import Refusal

Side = Literal["left", "right"]
"""Which end of a text that is too long goes."""


@dataclass(frozen=True)
class Prepared:
    """Ids to compute, one list per text."""

    ids: list[list[int]]
    tokens: int
    """Tokens of all texts before any cut."""
    truncated: list[int]
    """Texts that lost an end."""
    hidden_prefix: int


def prepare_texts(
    model: SentenceEncoder, texts: Sequence[str], *, prompt_name: str | None = None, side: Side = "right", cut: bool = True
) -> Prepared:
    """Tokenise texts; with `cut` off, one that is too long is refused."""
    prompt = _prompt(model, prompt_name)
    base = model.folder.base
    whole = [prompt + text for text in texts] if prompt else list(texts)
    if isinstance(base, TransformerModule) and base.lowercase:
        whole = [text.lower() for text in whole]
    ids = model.tokenizer.encode_plain(whole) if isinstance(base, StaticModule) else model.tokenizer.encode(whole)
    return _fitted(model, ids, prompt, side, cut)


def prepare_ids(model: SentenceEncoder, arrays: Sequence[Sequence[int]], *, side: Side = "right", cut: bool = True) -> Prepared:
    """Check token ids and put special tokens around those that come without."""
    highest = model.engine.vocabulary_size
    for number, array in enumerate(arrays):
        if not array:
            raise Refusal(422, f"token array {number} is empty")
        wrong = next((id for id in array if not 0 <= id < highest), None)
        if wrong is not None:
            raise Refusal(422, f"token array {number} holds {shown(str(wrong), 30)}, the model's ids are 0 to {highest - 1:,}")
    if isinstance(model.folder.base, StaticModule):
        return _fitted(model, [list(array) for array in arrays], "", side, cut)
    tokenizer = model.tokenizer
    wrapped = [list(array) if tokenizer.wrap(tokenizer.unwrap(array)) == list(array) else tokenizer.wrap(array) for array in arrays]
    return _fitted(model, wrapped, "", side, cut)


def _prompt(model: SentenceEncoder, name: str | None) -> str:
    name = name or model.folder.default_prompt
    if name is None:
        return ""
    if name not in model.folder.prompts:
        known = ", ".join(model.folder.prompts) or "none"
        raise UsageError(f"the model has no prompt named {shown(name)}; it has: {known}")
    return model.folder.prompts[name]


def _fitted(model: SentenceEncoder, ids: list[list[int]], prompt: str, side: Side, cut: bool) -> Prepared:
    limit = model.max_length
    tokens = sum(map(len, ids))
    long = [] if limit is None else [number for number, one in enumerate(ids) if len(one) > limit]
    if long and limit is not None:
        if not cut:
            raise Refusal(413, f"text {long[0]} has {len(ids[long[0]]):,} tokens, the model's limit is {limit:,}")
        for number in long:
            ids[number] = _shortened(model, ids[number], limit, side)
    keeps_prompt = all(module.include_prompt for module in model.folder.modules if isinstance(module, PoolingModule))
    return Prepared(ids, tokens, long, model.tokenizer.prefix_length(prompt) if prompt and not keeps_prompt else 0)


def _shortened(model: SentenceEncoder, ids: list[int], limit: int, side: Side) -> list[int]:
    if isinstance(model.folder.base, StaticModule):
        return ids[:limit] if side == "right" else ids[-limit:]
    tokenizer = model.tokenizer
    plain, room = tokenizer.unwrap(ids), max(limit - tokenizer.special_count, 1)
    return tokenizer.wrap(plain[:room] if side == "right" else plain[-room:])
