"""A long text → overlapping stretches that a model can take whole.

A stretch ends behind a sentence if one ends in its second half, otherwise at white space, otherwise where it is full. The stretches
together hold every character; each but the first begins inside the one before it, at the beginning of a word where there is one.
"""

from __future__ import annotations

import re

from munjang.errors import UsageError

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
