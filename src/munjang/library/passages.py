"""A long text → overlapping stretches that a model can take whole.

A stretch ends behind a sentence if one ends in its second half, otherwise at white space, otherwise where it is full. The stretches
together hold every character; each but the first begins inside the one before it, at the beginning of a word where there is one.

`fitting_passages` splits a text whose passages have more tokens than the model takes into shorter ones. How many characters a token has
differs from text to text, so a number of characters alone does not promise that a passage is read whole. An encoder that can count
(`count_tokens`, `max_length`) is asked about passages that may be too long; one that cannot is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from munjang.errors import UsageError
from munjang.library.store import Settings
from munjang.types import Encoder

DEFAULT_CHARACTERS = 1_000
CHARACTERS_PER_TOKEN = 2
"""Korean has about two characters a token and English four, so that two fit a model's window in both."""

_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


def split_passages(text: str, *, characters: int, overlap: int) -> list[tuple[int, int]]:
    """Return the start and the end of each passage; a text that fits is one.

    >>> split_passages("It rains. It snows. It is cold.", characters=20, overlap=10)
    [(0, 20), (10, 26), (20, 31)]
    """
    if not 0 <= overlap <= characters // 2 or characters < 2:
        raise UsageError(f"passages of {characters} characters that overlap by {overlap}: expected an overlap of at most half")
    found: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > characters:
        stop = _end(text, start + characters // 2 + 1, start + characters)
        found.append((start, stop))
        start = _beginning(text, max(start + 1, stop - overlap), stop)
    return [*found, (start, len(text))]


def _end(text: str, first: int, last: int) -> int:
    """Return the best place between two places to end a passage."""
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [match.end() for match in pattern.finditer(text, first, last)]
        if ends:
            return ends[-1]
    return last


def _beginning(text: str, first: int, last: int) -> int:
    """Return the first beginning of a word between two places, or the first place."""
    space = _SPACE.search(text, max(0, first - 1), last)
    return space.end() if space is not None and space.end() < last else first


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
