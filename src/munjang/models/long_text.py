"""What happens to a text that is longer than the model's limit: never a silent cut.

Comes in: the token ids of texts, special tokens included. Goes out: the pieces to encode, each with the text it belongs to, and which texts
were too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from munjang.errors import TextError
from munjang.text.tokenizer import Tokenizer
from munjang.text.windows import windows
from munjang.wording import count, plural

LongText: TypeAlias = Literal["truncate", "window", "error"]
"""`truncate` keeps the beginning and warns; `window` encodes overlapping windows and averages; `error` refuses."""

OVERLAP = 4
"""Neighbouring windows share one part in this many."""


class TruncationWarning(UserWarning):
    """Some texts were longer than the model's limit; only their beginning was read.

    What to do differs for a caller in Python, who sees the message, and for one at a shell, who is shown `for_shell`.
    """

    def __init__(self, fact: str, in_python: str = "", at_shell: str = "") -> None:
        super().__init__(f"{fact} ({in_python})" if in_python else fact)
        self.for_shell = f"{fact} ({at_shell})" if at_shell else fact


@dataclass(frozen=True)
class Pieces:
    """What to encode: pieces of texts, the text of each, and the texts that were too long."""

    ids: list[list[int]]
    owner: list[int]
    too_long: list[int]


def fit(ids: Sequence[list[int]], tokenizer: Tokenizer, *, limit: int | None, policy: LongText) -> Pieces:
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
        parts = _parts(tokenizer.unwrap(one), tokenizer, limit, policy) if number in long else [one]
        pieces += parts
        owner += [number] * len(parts)
    return Pieces(pieces, owner, too_long)


def _parts(plain: list[int], tokenizer: Tokenizer, limit: int, policy: LongText) -> list[list[int]]:
    room = max(limit - tokenizer.special_count, 1)
    if policy == "truncate":
        return [tokenizer.wrap(plain[:room])]
    return [tokenizer.wrap(part) for part in windows(plain, size=room, stride=max(room - room // OVERLAP, 1))]
