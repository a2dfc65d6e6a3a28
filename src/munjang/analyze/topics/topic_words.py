"""Texts → the words that can describe a topic: nouns and foreign words, never particles or endings.

Every distinct written word is analysed once, by itself: a collection repeats its words, so this costs a fraction of reading every text (a
quarter for 7,000 bills, with 97 % of the nouns the same). Nouns that the collection writes together only are one word (`compounds`). A
noun cut out of its word is analysed once more by itself, as it will stand in a list of topic words; what then reads as having a particle or
an ending is left out. Words of one character say little and are left out, unless a collection has no others.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.text.phrases import NounPart, find_noun_runs
from munjang.text.tagging import DictionaryTagger, Morpheme, Tagger
from munjang.text.unicode import clean
from munjang.types import Floats, Ints
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

    def select(self, documents: Ints) -> Bag:
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


def join_bags(first: Bag, second: Bag) -> Bag:
    """Return the documents of both over the words of both."""
    vocabulary = tuple(sorted(set(first.vocabulary) | set(second.vocabulary)))
    place = {word: number for number, word in enumerate(vocabulary)}
    moved = [np.array([place[word] for word in bag.vocabulary] or [0], dtype=np.int32)[bag.terms] for bag in (first, second)]
    starts = np.concatenate([first.starts, second.starts[1:] + first.starts[-1]])
    return Bag(vocabulary, starts, np.concatenate(moved), np.concatenate([first.counts, second.counts]))


def compute_npmi(topics: Sequence[Sequence[str]], bag: Bag) -> list[float]:
    """Return the coherence of each topic; a topic of fewer than two known words has 0."""
    place = {word: number for number, word in enumerate(bag.vocabulary)}
    words = sorted({word for topic in topics for word in topic if word in place})
    if not words or not len(bag):
        return [0.0] * len(topics)
    together_WW, column = _count_meetings(bag, [place[word] for word in words]), {word: number for number, word in enumerate(words)}
    return [_average_npmi(together_WW, [column[word] for word in topic if word in column], len(bag)) for topic in topics]


def compute_diversity(topics: Sequence[Sequence[str]]) -> float:
    """Return the share of different words among all words of all topics.

    >>> compute_diversity([["비", "눈"], ["비", "해"]])
    0.75
    """
    words = [word for topic in topics for word in topic]
    return len(set(words)) / len(words) if words else 0.0


def _count_meetings(bag: Bag, terms: list[int]) -> Floats:
    """Return in how many documents each pair of words meets, (W, W); its diagonal is in how many a word stands."""
    place_V = np.full(len(bag.vocabulary), -1)
    place_V[terms] = np.arange(len(terms))
    at_E, rows_E = place_V[bag.terms], bag.rows()
    held = at_E >= 0
    at_E, rows_E = at_E[held], rows_E[held]
    together_WW = np.zeros((len(terms), len(terms)))
    step = 2_048  # documents held as a dense block
    for start in range(0, len(bag), step):
        low, high = np.searchsorted(rows_E, [start, start + step])
        block_WM = np.zeros((len(terms), min(step, len(bag) - start)), dtype=np.float32)
        block_WM[at_E[low:high], rows_E[low:high] - start] = 1
        together_WW += block_WM @ block_WM.T
    return together_WW


def _average_npmi(together_WW: Floats, words: list[int], documents: int) -> float:
    scores = []
    for place, a in enumerate(words):
        for b in words[:place]:
            both = together_WW[a, b] / documents
            if both == 0:
                scores.append(-1.0)
            elif both == 1:
                scores.append(1.0)
            else:
                scores.append(np.log(both * documents**2 / (together_WW[a, a] * together_WW[b, b])) / -np.log(both))
    return float(np.mean(scores)) if scores else 0.0


TOGETHER = 0.6
"""The share of a part's places from which it counts as a part of the longer word. Of 0.5 to 0.9 the best by NPMI on 7,000 bills."""
MAX_CHARACTERS = 16
"""Nouns that are longer together are a phrase written without spaces, not a word."""

Run: TypeAlias = tuple[NounPart, ...]


def join_compounds(runs: Mapping[Run, int], *, known: Collection[str] = ()) -> dict[Run, list[str]]:
    """Return the words of each run; `runs` says how often each stands in the collection, `known` is a vocabulary in lower case.

    >>> run = (NounPart("부가", True), NounPart("가치세", True))
    >>> join_compounds({run: 3, run[:1]: 1})[run]
    ['부가가치세']
    """
    words = {run: _join_known(run, known) for run in runs}
    while pairs := _find_compounds(words, runs, known):  # ends, since every round leaves fewer parts
        words = {run: _merge(parts, pairs) for run, parts in words.items()}
    return {run: [part.text for part in parts if part.stands_alone] for run, parts in words.items()}


def _find_compounds(words: Mapping[Run, Run], runs: Mapping[Run, int], known: Collection[str]) -> set[Run]:
    """Return the neighbouring parts that are one word."""
    alone: Counter[NounPart] = Counter()
    together: Counter[tuple[NounPart, NounPart]] = Counter()
    for run, parts in words.items():
        for part in parts:
            alone[part] += runs[run]
        for pair in pairwise(parts):
            together[pair] += runs[run]
    return {
        pair
        for pair, count in together.items()
        if count >= TOGETHER * min(alone[part] for part in _count_judges(pair))
        and sum(len(part.text) for part in pair) <= MAX_CHARACTERS
        and not any(part.text.casefold() in known for part in pair)
    }


def _count_judges(pair: Sequence[NounPart]) -> Sequence[NounPart]:
    """Return the parts that are words by themselves; both where none is."""
    return [part for part in pair if part.stands_alone and len(part.text) > 1] or pair


def _merge(parts: Run, pairs: Collection[Run]) -> Run:
    found: list[NounPart] = []
    for part in parts:
        if found and (found[-1], part) in pairs:
            found[-1] = NounPart(found[-1].text + part.text, stands_alone=True)
        else:
            found.append(part)
    return tuple(found)


def _join_known(run: Run, known: Collection[str]) -> Run:
    """Join parts to the longest known words, from the left."""
    found: list[NounPart] = []
    at = 0
    while at < len(run):
        ends = range(len(run), at + 1, -1)
        end = next((end for end in ends if "".join(part.text for part in run[at:end]).casefold() in known), at + 1)
        found.append(run[at] if end == at + 1 else NounPart("".join(part.text for part in run[at:end]), stands_alone=True))
        at = end
    return tuple(found)


FEW, MANY = 100, 1_000
"""Collections smaller than this keep words of one document, of two, beyond only words of three."""

_GRAMMAR = ("J", "E", "XSV", "XSA", "VX", "VCP", "VCN")  # particles, endings, and what makes or helps a verb
_AROUND = ".,;:!?…·\"'`“”‘’()[]{}<>〈〉《》「」『』【】（）、。"


def list_words(texts: Sequence[str], by: Tagger, *, known: Collection[str] = ()) -> list[list[str]]:
    """Return the words of each text, in order, in lower case; words of the vocabulary `known` are cut as they were then."""
    if isinstance(by, DictionaryTagger):
        texts = [by.spell(text) for text in texts]
    once: dict[str, str] = {}  # a word is held once, however often it is written
    written = [[once.setdefault(word, word) for word in _split_written(text)] for text in texts]
    how_often = Counter(word for words in written for word in words)
    runs_of = {word: [tuple(run) for run in runs] for word, runs in zip(once, find_noun_runs(once, by=by), strict=True)}
    total: Counter[Run] = Counter()
    for word, runs in runs_of.items():
        for run in runs:
            total[run] += how_often[word]
    words_in = {run: [sys.intern(word.casefold()) for word in words] for run, words in join_compounds(total, known=known).items()}
    meant = {word: [noun for run in runs for noun in words_in[run]] for word, runs in runs_of.items()}
    return [[noun for word in words for noun in meant[word]] for words in written]


_REMEMBERED = 1_000_000
"""Written words whose nouns a `WordIndex` knows at once."""


class WordIndex:
    """Which words of a vocabulary stand in texts; each written word is analysed once, however many texts are read.

    What a word holds is a matter of the word and the vocabulary, so texts can be read in any order and in any parts.
    """

    def __init__(self, vocabulary: Sequence[str], by: Tagger) -> None:
        self._place = {word: number for number, word in enumerate(vocabulary)}
        self._by = by
        self._terms: dict[str, tuple[int, ...]] = {}

    def read(self, texts: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the places of the words of all texts one after the other, and how many each text has."""
        written = [_split_written(text) for text in texts]
        fresh = list(dict.fromkeys(word for words in written for word in words if word not in self._terms))
        if fresh:
            if len(self._terms) + len(fresh) > _REMEMBERED:
                self._terms.clear()
                fresh = list(dict.fromkeys(word for words in written for word in words))
            for word, found in zip(fresh, list_words(fresh, self._by, known=self._place), strict=True):
                self._terms[word] = tuple(self._place[noun] for noun in found if noun in self._place)
        held = [[term for word in words for term in self._terms[word]] for words in written]
        return np.array([term for terms in held for term in terms], dtype=np.int64), np.array(list(map(len, held)), dtype=np.int64)


def _split_written(text: str) -> list[str]:
    """Return the words of a text as they are written, without marks around them."""
    return [word for part in clean(text).split() if (word := part.strip(_AROUND))]


def bag_words(texts: Sequence[str], by: Tagger, *, known: Collection[str] = ()) -> Bag:
    """Count the words of texts; one row per text. `known` is the vocabulary of a bag that this one will be joined with."""
    found = list_words(texts, by, known=known)
    long = [[word for word in words if len(word) > 1] for words in found]
    kept = long if any(long) else found
    least = 1 if len(texts) < FEW else 2 if len(texts) < MANY else 3
    frequent = [word for word, count in Counter(word for words in kept for word in set(words)).items() if count >= least]
    pure = {word for word, morphemes in zip(frequent, by.tag(frequent), strict=True) if not _has_grammar(morphemes)}
    return make_bag([[word for word in words if word in pure] for words in kept] if pure else kept, min_documents=least)


def _has_grammar(morphemes: Sequence[Morpheme]) -> bool:
    return any(morpheme.tag.startswith(_GRAMMAR) for morpheme in morphemes)
