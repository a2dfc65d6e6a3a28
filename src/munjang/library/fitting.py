"""Passages that a model reads to their end: a text whose passages have more tokens than the model takes is split into shorter ones.

How many characters a token has differs from text to text, so a number of characters alone does not promise that a passage is read whole.
An encoder that can count (`count_tokens`, `max_length`) is asked about passages that may be too long; one that cannot is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from munjang.library.passages import split_passages
from munjang.library.store import Settings
from munjang.types import Encoder

_TOKENS_PER_CHARACTER = 4
"""No tokenizer makes more of one character: those that fall back to bytes have one token a byte."""

_SHORTEST = 8
"""Characters of passages that are not split further: a model that reads fewer tokens than these have cannot be helped."""

Span = tuple[int, int]


def fitting_passages(texts: Sequence[str], encoder: Encoder, settings: Settings) -> list[list[Span]]:
    """Return the start and the end of each passage of each text."""
    characters, overlap = settings.passage_characters, settings.passage_overlap
    found = [split_passages(text, characters=characters, overlap=overlap) for text in texts]
    limit, count = getattr(encoder, "max_length", None), getattr(encoder, "count_tokens", None)
    if not isinstance(limit, int) or count is None:
        return found
    unsure = list(range(len(texts)))
    while unsure and characters > _SHORTEST:
        unsure = _too_long(texts, found, unsure, limit, count)
        characters = max(_SHORTEST, characters * 5 // 8)
        for number in unsure:
            found[number] = split_passages(texts[number], characters=characters, overlap=min(overlap, characters // 5))
    return found


def _too_long(
    texts: Sequence[str], found: Sequence[Sequence[Span]], asked: Sequence[int], limit: int, count: Callable[[list[str]], list[int]]
) -> list[int]:
    """Return which of the texts asked about have a passage of more tokens than the limit."""
    spans = [(number, span) for number in asked for span in found[number] if (span[1] - span[0]) * _TOKENS_PER_CHARACTER > limit]
    counts = count([texts[number][start:stop] for number, (start, stop) in spans]) if spans else []
    return sorted({number for (number, _), tokens in zip(spans, counts, strict=True) if tokens > limit})
