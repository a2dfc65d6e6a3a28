"""Texts, or token ids that a client brings along → the ids that the engine gets, and which were too long.

The same steps that `SentenceEncoder.encode` takes before it computes, so that a served vector equals an offline one. Nothing is computed
here. A tokenizer takes some 100 bytes for a token, so texts go through it a slice at a time: a body of 8 MB would take a gigabyte, and
what was free again would stay with the allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from munjang.engine.modules import PoolingModule, StaticModule, TransformerModule
from munjang.errors import quote
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.errors import Refusal
from munjang.wording import count

Side = Literal["left", "right"]
"""Which end of a text that is too long goes."""

SLICE = 65_536
"""Characters that a tokenizer gets at once."""


@dataclass(frozen=True)
class Cutting:
    """What happens to a text that is too long."""

    side: Side = "right"
    """The end that goes."""
    allowed: bool = True
    """Otherwise the text is refused."""
    max_tokens: int | None = None
    """A limit below the model's own, special tokens included."""

    def limit_of(self, model: SentenceEncoder) -> int | None:
        """Return how many tokens are read; None: all."""
        return min((each for each in (model.max_length, self.max_tokens) if each is not None), default=None)


CUT = Cutting()
"""What the model does by itself."""


@dataclass(frozen=True)
class Prepared:
    """Ids to compute, one list per text."""

    ids: list[list[int]]
    tokens: int
    """Tokens of all texts before any cut."""
    truncated: list[int]
    """Texts that lost an end."""
    hidden_prefix: int


def prepare_texts(model: SentenceEncoder, texts: Sequence[str], cutting: Cutting = CUT, *, prompt_name: str | None = None) -> Prepared:
    """Tokenise texts."""
    prompt = _prompt(model, prompt_name)
    return _read(model.way(prompt_name), [prompt + text for text in texts] if prompt else list(texts), prompt, cutting)


def prepare_as_written(model: SentenceEncoder, texts: Sequence[str], cutting: Cutting = CUT) -> Prepared:
    """Tokenise texts without the model's default prompt, as `SentenceEncoder.encode_tokens` does."""
    return _read(model, list(texts), "", cutting)


def _read(model: SentenceEncoder, whole: list[str], prompt: str, cutting: Cutting) -> Prepared:
    ids: list[list[int]] = []
    counts: list[int] = []
    for group in _groups(whole):
        if len(group[0]) > SLICE:
            kept, tokens = _read_in_slices(model, group[0], cutting)
            ids.append(kept)
            counts.append(tokens)
        else:
            found = _token_ids(model, group)
            ids += found
            counts += map(len, found)
    return _fit(model, ids, counts, prompt, cutting)


def prepare_ids(model: SentenceEncoder, arrays: Sequence[Sequence[int]], cutting: Cutting = CUT) -> Prepared:
    """Check token ids and put special tokens around those that come without."""
    highest = model.engine.vocabulary_size
    for number, array in enumerate(arrays):
        if not array:
            raise Refusal(422, f"token array {number} is empty")
        wrong = next((id for id in array if not 0 <= id < highest), None)
        if wrong is not None:
            raise Refusal(422, f"token array {number} holds {quote(str(wrong), 30)}, the model's ids are 0 to {highest - 1:,}")
    if isinstance(model.folder.base, StaticModule):
        return _fit(model, [list(array) for array in arrays], list(map(len, arrays)), "", cutting)
    tokenizer = model.tokenizer
    wrapped = [list(array) if tokenizer.wrap(tokenizer.unwrap(array)) == list(array) else tokenizer.wrap(array) for array in arrays]
    return _fit(model, wrapped, list(map(len, wrapped)), "", cutting)


def _token_ids(model: SentenceEncoder, texts: list[str]) -> list[list[int]]:
    base = model.folder.base
    if isinstance(base, TransformerModule) and base.lowercase:
        texts = [text.lower() for text in texts]
    return model.tokenizer.encode_plain(texts) if isinstance(base, StaticModule) else model.tokenizer.encode(texts)


def _groups(texts: list[str]) -> Iterator[list[str]]:
    """Yield neighbours that have SLICE characters together at most; a text that has more stands alone."""
    group: list[str] = []
    size = 0
    for text in texts:
        if group and size + len(text) > SLICE:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _read_in_slices(model: SentenceEncoder, text: str, cutting: Cutting) -> tuple[list[int], int]:
    """Return the ids of a very long text, and how many it has; where that is too many, the ids at the end that is kept, and a few more."""
    static = isinstance(model.folder.base, StaticModule)
    limit, side, seen = cutting.limit_of(model), cutting.side, 0
    kept: list[int] = []
    for part in _slice(text):
        [ids] = _token_ids(model, [part])
        plain = ids if static else model.tokenizer.unwrap(ids)
        seen += len(plain)
        if limit is None or side == "left" or len(kept) <= limit:
            kept += plain
        if limit is not None and side == "left":
            kept = kept[-limit - 1 :]
    return (kept, seen) if static else (model.tokenizer.wrap(kept), seen + model.tokenizer.special_count)


def _slice(text: str) -> list[str]:
    """Cut a text before white space, into slices of about SLICE characters.

    >>> [len(part) for part in _slice("word " * 20_000)]
    [65534, 34466]
    """
    slices, start = [], 0
    while len(text) - start > SLICE:
        stop = max(text.rfind(" ", start + 1, start + SLICE), text.rfind("\n", start + 1, start + SLICE))
        stop = stop if stop > start + SLICE // 2 else start + SLICE
        slices.append(text[start:stop])
        start = stop
    return [*slices, text[start:]]


def _prompt(model: SentenceEncoder, name: str | None) -> str:
    name = name or model.folder.default_prompt
    if name is None:
        return ""
    if name not in model.folder.prompts:
        known = ", ".join(model.folder.prompts) or "none"
        raise Refusal(422, f"the model has no prompt named {quote(name)}; it has: {known}", field="prompt_name")
    return model.folder.prompts[name]


def _fit(model: SentenceEncoder, ids: list[list[int]], counts: list[int], prompt: str, cutting: Cutting) -> Prepared:
    limit = cutting.limit_of(model)
    long = [] if limit is None else [number for number, tokens in enumerate(counts) if tokens > limit]
    if long and limit is not None:
        if not cutting.allowed:
            raise Refusal(422, f"text {long[0]} has {count(counts[long[0]], 'token')}, the model's limit is {limit:,}")
        for number in long:
            ids[number] = _shorten(model, ids[number], limit, cutting.side)
    keeps_prompt = all(module.include_prompt for module in model.folder.modules if isinstance(module, PoolingModule))
    return Prepared(ids, sum(counts), long, model.tokenizer.prefix_length(prompt) if prompt and not keeps_prompt else 0)


def _shorten(model: SentenceEncoder, ids: list[int], limit: int, side: Side) -> list[int]:
    if isinstance(model.folder.base, StaticModule):
        return ids[:limit] if side == "right" else ids[-limit:]
    tokenizer = model.tokenizer
    plain, room = tokenizer.unwrap(ids), max(limit - tokenizer.special_count, 1)
    return tokenizer.wrap(plain[:room] if side == "right" else plain[-room:])
