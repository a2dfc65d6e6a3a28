"""The token ids of a stage's texts, each text once, in one flat array.

In: texts, many of them several times. Out: an id per text and its tokens on request. Lists would take ten times the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 4096
ABSENT: tuple[int, ...] = ()
"""Stands for a text that a row does not have (a shorter list of documents), told from an empty text by identity."""


class TokenTable:
    """Tokens of unique texts."""

    def __init__(self, texts: Iterable[str], tokenize: Callable[[Sequence[str]], list[list[int]]]) -> None:
        unique = list(dict.fromkeys(texts))
        self._places = {text: place for place, text in enumerate(unique)}
        parts: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for start in range(0, len(unique), _AT_ONCE):
            found = tokenize(unique[start : start + _AT_ONCE])
            lengths += [len(ids) for ids in found]
            parts.append(np.fromiter((piece for ids in found for piece in ids), np.int32, sum(len(ids) for ids in found)))
        self._ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    def __getitem__(self, text: str) -> NDArray[np.int32]:
        place = self._places[text]
        return self._ids[self._starts[place] : self._starts[place + 1]]

    def length(self, text: str) -> int:
        """Return how many tokens a text has."""
        place = self._places[text]
        return int(self._starts[place + 1] - self._starts[place])

    def used(self) -> NDArray[np.int64]:
        """Return every piece that stands in some text, in order."""
        return np.unique(self._ids).astype(np.int64)
