"""What happens to a text that is longer than the model's limit: never a silent cut.

Comes in: the token ids of texts, special tokens included. Goes out: the pieces to encode, each with the text it belongs to, and which texts
were too long.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from munjang.errors import TextError, UsageError
from munjang.text.tokenizer import Tokenizer
from munjang.types import LongText
from munjang.wording import count, plural


def split_windows(ids: Sequence[int], *, size: int, stride: int) -> list[list[int]]:
    """Cut ids into windows of at most `size` that start every `stride` ids and together hold every id.

    No ids give one empty window, so that a text always has a vector. No window lies wholly inside the one before it.

    >>> split_windows([1, 2, 3, 4, 5], size=3, stride=2)
    [[1, 2, 3], [3, 4, 5]]
    """
    if size < 1 or not 1 <= stride <= size:
        raise UsageError(f"windows of size {size} with stride {stride}: expected 1 ≤ stride ≤ size")
    starts = range(0, max(len(ids) - size, 0) + stride, stride)
    return [list(ids[start : start + size]) for start in starts]


OVERLAP = 4
"""Neighbouring windows share one part in this many."""


class TruncationWarning(UserWarning):
    """Some texts were longer than the model's limit; only their beginning was read.

    What to do differs for a caller in Python, who sees the message, and for one at a shell, who is shown `for_shell`.
    """

    def __init__(self, fact: str, in_python: str = "", at_shell: str = "") -> None:
        super().__init__(f"{fact} ({in_python})" if in_python else fact)
        self.for_shell = f"{fact} ({at_shell})" if at_shell else fact


def warn_of_cut(cut: int, seen: int, limit: int | None, *, in_python: str, stacklevel: int) -> None:
    """Warn that so many of the texts seen were cut."""
    fact = f"{cut:,} of {count(seen, 'text')} {plural(cut, 'is')} longer than {limit} tokens; only the beginning was read"
    advice = "munjang encode --long-text window reads all"
    warnings.warn(TruncationWarning(fact, in_python=in_python, at_shell=advice), stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class Pieces:
    """What to encode: pieces of texts, the text of each, and the texts that were too long."""

    ids: list[list[int]]
    owner: list[int]
    too_long: list[int]


def fit_texts(ids: Sequence[list[int]], tokenizer: Tokenizer, *, limit: int | None, policy: LongText) -> Pieces:
    """Make every text fit `limit` tokens by `policy`."""
    too_long = [] if limit is None else [number for number, one in enumerate(ids) if len(one) > limit]
    if limit is None or not too_long:
        return Pieces(list(ids), list(range(len(ids))), [])
    if policy == "error":
        first, share = too_long[0], f"{len(too_long):,} of {count(len(ids), 'text')} {plural(len(too_long), 'is')} too long"
        raise TextError(
            f"text {first} has {count(len(ids[first]), 'token')}, the model's limit is {limit:,} ({share})\n"
            "  shorten them, or choose long_text='window' or 'truncate'"
        )
    pieces: list[list[int]] = []
    owner: list[int] = []
    long = set(too_long)
    for number, one in enumerate(ids):
        parts = _split_text(tokenizer.unwrap(one), tokenizer, limit, policy) if number in long else [one]
        pieces += parts
        owner += [number] * len(parts)
    return Pieces(pieces, owner, too_long)


def _split_text(plain: list[int], tokenizer: Tokenizer, limit: int, policy: LongText) -> list[list[int]]:
    room = max(limit - tokenizer.special_count, 1)
    if policy == "truncate":
        return [tokenizer.wrap(plain[:room])]
    return [tokenizer.wrap(part) for part in split_windows(plain, size=room, stride=max(room - room // OVERLAP, 1))]
