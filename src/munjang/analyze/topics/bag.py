"""Lists of words → a bag of words: which document holds which word how often, as flat arrays.

Words that stand in fewer documents than asked are dropped, except where nothing would be left; of very many words the ones in most
documents stay. The order of the vocabulary follows from the words alone, so equal collections give equal bags.

Shapes: N documents, V words, E entries (a document with a word).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from munjang.types import Ints
from munjang.wording import brief_repr

MAX_WORDS = 50_000
"""Words that a vocabulary holds at most."""


@brief_repr
@dataclass(frozen=True)
class Bag:
    """Documents as counted words; entries of document n are starts[n] to starts[n + 1]."""

    vocabulary: tuple[str, ...]
    starts: Ints
    terms: NDArray[np.int32]
    counts: NDArray[np.int32]

    def __len__(self) -> int:
        """How many documents."""
        return len(self.starts) - 1

    def rows(self) -> Ints:
        """Return the document of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def chosen(self, documents: Ints) -> Bag:
        """Return the bag of some documents, in the order given, over the same vocabulary."""
        lengths = np.diff(self.starts)[documents]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.repeat(self.starts[documents] - starts[:-1], lengths) + np.arange(starts[-1])
        return Bag(self.vocabulary, starts, self.terms[entries], self.counts[entries])

    def totals(self) -> Ints:
        """Return how often each word stands in all documents."""
        return np.bincount(self.terms, weights=self.counts, minlength=len(self.vocabulary)).astype(np.int64)

    def document_counts(self) -> Ints:
        """Return in how many documents each word stands."""
        return np.bincount(self.terms, minlength=len(self.vocabulary)).astype(np.int64)


def make_bag(documents: Iterable[Sequence[str]], *, min_documents: int = 1, max_words: int = MAX_WORDS) -> Bag:
    """Count the words of documents.

    >>> make_bag([["비", "눈", "비"], ["눈"]]).vocabulary
    ('눈', '비')
    """
    held = list(documents)
    found: Counter[str] = Counter()
    for words in held:
        found.update(set(words))
    kept = {word for word, count in found.items() if count >= min_documents} or set(found)
    vocabulary = tuple(sorted(sorted(kept, key=lambda word: (-found[word], word))[:max_words]))
    return fill_bag(map(Counter, held), vocabulary)


def fill_bag(documents: Iterable[Counter[str]], vocabulary: Sequence[str]) -> Bag:
    """Return counted words as a bag over a vocabulary; other words are left out."""
    place = {word: number for number, word in enumerate(vocabulary)}
    starts, terms, counts = [0], array("i"), array("i")  # not lists: a Python number takes 36 bytes
    for each in documents:
        for word in sorted(word for word in each if word in place):
            terms.append(place[word])
            counts.append(each[word])
        starts.append(len(terms))
    return Bag(tuple(vocabulary), np.array(starts, dtype=np.int64), np.array(terms, dtype=np.int32), np.array(counts, dtype=np.int32))


def joined(first: Bag, second: Bag) -> Bag:
    """Return the documents of both over the words of both."""
    vocabulary = tuple(sorted(set(first.vocabulary) | set(second.vocabulary)))
    place = {word: number for number, word in enumerate(vocabulary)}
    moved = [np.array([place[word] for word in bag.vocabulary] or [0], dtype=np.int32)[bag.terms] for bag in (first, second)]
    starts = np.concatenate([first.starts, second.starts[1:] + first.starts[-1]])
    return Bag(vocabulary, starts, np.concatenate(moved), np.concatenate([first.counts, second.counts]))
