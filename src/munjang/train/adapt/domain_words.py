"""Texts → the words that a vocabulary lacks most: frequent ones that are split into many pieces.

In: texts and a tokenizer. Out: words in the order of what they save: how often a word stands there, times the pieces it would save. Korean
words carry particles and endings, so a stem that stands before several of them counts as a word; a piece that begins a word then serves all
its forms. A word inside a chosen one counts only where it stands without it.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_COUNT = 5
"""Times that a word must stand in the text."""
LEAST_ENDINGS = 3
"""Different continuations that make the beginning of Korean words a stem."""
LONGEST = 32

_WORD = re.compile(r"[^\W\d_]\w*")
_HANGUL = re.compile(r"[가-힣]+")


@dataclass(frozen=True)
class DomainWord:
    """A word, how often it stands in the texts, and the pieces it is split into now."""

    word: str
    count: int
    pieces: tuple[int, ...]


def domain_words(texts: Iterable[str], backend: Any, *, most: int, spaced: bool = False, whole: bool = False) -> list[DomainWord]:
    """Return at most `most` words that `backend` (of the tokenizers library) splits, the most worthwhile first.

    `spaced` takes only words after white space, for tokenizers whose pieces begin with the space. `whole` takes no stems.
    """
    counts = count_words((_normal(text, backend) for text in texts), spaced=spaced)
    candidates = counts if whole else counts | stem_counts(counts)
    frequent = {word: count for word, count in candidates.items() if count >= LEAST_COUNT and 2 <= len(word) <= LONGEST}
    listed = sorted(frequent)
    split = [tuple(found.ids) for found in backend.encode_batch(listed, add_special_tokens=False)]
    unknown = backend.token_to_id(_unknown(backend) or "")
    found = [
        DomainWord(word, frequent[word], pieces)
        for word, pieces in zip(listed, split, strict=True)
        if len(pieces) > 1 or (pieces and pieces[0] == unknown)
    ]
    return most_saving(found, most=most)


def count_words(texts: Iterable[str], *, spaced: bool = False) -> Counter[str]:
    """Count the words of texts; those of digits alone are none.

    >>> sorted(count_words(["a cat, (the cat)"]).items())
    [('a', 1), ('cat', 2), ('the', 1)]
    """
    made: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            if not spaced or match.start() == 0 or text[match.start() - 1].isspace():
                made[match[0]] += 1
    return made


def stem_counts(words: Mapping[str, int]) -> dict[str, int]:
    """Count the beginnings of Korean words that stand before several endings; the whole word counts as an ending too.

    >>> stem_counts({"법률은": 2, "법률이": 3, "법률의": 1})
    {'법률': 6}
    """
    counts: Counter[str] = Counter()
    following: dict[str, set[str]] = {}
    for word, count in words.items():
        if _HANGUL.fullmatch(word):
            for length in range(2, len(word) + 1):
                counts[word[:length]] += count
                following.setdefault(word[:length], set()).add(word[length : length + 1])
    return {stem: counts[stem] for stem, ways in following.items() if len(ways) >= LEAST_ENDINGS}


def most_saving(words: Sequence[DomainWord], *, most: int) -> list[DomainWord]:
    """Return the words that save most pieces, one after the other, each counted only for what the chosen ones leave to it."""
    known = {word.word: word for word in words}
    chosen = _Chosen()
    heap = [(-chosen.saved_by(word), word.word) for word in words]
    heapq.heapify(heap)
    while heap and len(chosen.words) < most:
        before, name = heapq.heappop(heap)
        now = -chosen.saved_by(known[name])
        if now == before < 0:
            chosen.add(known[name])
        elif now < 0:
            heapq.heappush(heap, (now, name))
    return list(chosen.words.values())


class _Chosen:
    """The words chosen so far, and how much of each beginning's count they have taken."""

    def __init__(self) -> None:
        self.words: dict[str, DomainWord] = {}
        self._taken: Counter[str] = Counter()

    def saved_by(self, word: DomainWord) -> int:
        """Return how many pieces a word still saves: none where a longer chosen word stands, fewer where a chosen word begins it."""
        left = word.count - self._taken[word.word]
        begun = self._begun(word.word)
        if begun is not None:
            return left * max(0, len(word.pieces) - len(begun.pieces))
        # an unknown word is one piece already, and saves its meaning
        return left * max(1, len(word.pieces) - 1)

    def add(self, word: DomainWord) -> None:
        """Choose a word."""
        left = word.count - self._taken[word.word]
        begun = self._begun(word.word)
        for length in range(1 if begun is None else len(begun.word) + 1, len(word.word) + 1):
            self._taken[word.word[:length]] += left
        self.words[word.word] = word

    def _begun(self, word: str) -> DomainWord | None:
        """Return the longest chosen word that this one begins with."""
        return next((self.words[word[:length]] for length in range(len(word) - 1, 1, -1) if word[:length] in self.words), None)


def _normal(text: str, backend: Any) -> str:
    made: str = backend.normalizer.normalize_str(text) if backend.normalizer is not None else text
    return made.replace("▁", " ")


def _unknown(backend: Any) -> str | None:
    name: str | None = getattr(backend.model, "unk_token", None)
    return name
