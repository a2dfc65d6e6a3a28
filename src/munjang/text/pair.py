"""The ids of two texts → one input for a model that reads both together.

Comes in: each text's ids without special tokens. Goes out: the ids cut to fit, with the special tokens around and between them, and a
segment number for each. What the special tokens are is learnt from the tokenizer itself, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tokenizers

from munjang.errors import FolderError


class PairFrame(NamedTuple):
    """The special ids around and between two texts, and each part's segment number."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[list[int], int, list[int], int, list[int]]
    """Before, the first text's, between, the second text's, after."""

    @property
    def special_count(self) -> int:
        """How many tokens are added to a pair."""
        return len(self.before) + len(self.between) + len(self.after)

    @property
    def tells_texts_apart(self) -> bool:
        """Whether the second text has a segment number of its own."""
        return self.types[3] != self.types[1]

    def wrap(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """Put the special tokens around and between ids; return all ids and their segment numbers."""
        before, one, between, two, after = self.types
        ids = [*self.before, *first, *self.between, *second, *self.after]
        return ids, [*before, *[one] * len(first), *between, *[two] * len(second), *after]


def learn_pair_frame(tokenizer: tokenizers.Tokenizer, where: str) -> PairFrame:
    """Learn from one pair of texts what the tokenizer puts around a pair."""
    pair = tokenizer.encode("a", "a")
    owners = pair.sequence_ids
    if 0 not in owners or 1 not in owners:
        raise FolderError(f"{where}: the letter a has no token, so the special tokens around a text cannot be learnt")
    first, second = owners.index(0), owners.index(1)
    first_end, second_end = first + owners.count(0), second + owners.count(1)
    ids, types = pair.ids, pair.type_ids
    around = (types[:first], types[first], types[first_end:second], types[second], types[second_end:])
    return PairFrame(ids[:first], ids[first_end:second], ids[second_end:], around)


def shortened_pair(first: list[int], second: list[int], room: int | None) -> tuple[list[int], list[int]]:
    """Cut the longer text first, then both alike, until both fit."""
    if room is None or len(first) + len(second) <= room:
        return first, second
    short, long = sorted((len(first), len(second)))
    long = max(short, room - short) if short <= room else short
    if short + long > room:
        short, long = room // 2, room - room // 2
    keep_first, keep_second = (long, short) if len(first) > len(second) else (short, long)
    return first[:keep_first], second[:keep_second]
