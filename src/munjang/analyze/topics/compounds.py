"""Runs of nouns that touch → words: parts that mostly stand together are one word, as a collection writes it.

An analyser splits what its dictionary does not hold: 부가가치세 becomes 부가 and 가치세, and 가치세 is no word. So a run is joined where
one of two neighbouring parts seldom stands without the other; 대통령 and 선거, which also stand apart, stay two words. A suffix or a part
of one character is no word to judge by, the other part decides. Joined parts can be joined again, so compounds of three parts and more
are found.

Of a vocabulary that was made before, words stay what they were: its compounds are joined, its single words are joined with nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from munjang.text.phrases import NounPart

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
    words = {run: _joined_as_known(run, known) for run in runs}
    while pairs := _compounds(words, runs, known):  # ends, since every round leaves fewer parts
        words = {run: _merged(parts, pairs) for run, parts in words.items()}
    return {run: [part.text for part in parts if part.stands_alone] for run, parts in words.items()}


def _compounds(words: Mapping[Run, Run], runs: Mapping[Run, int], known: Collection[str]) -> set[Run]:
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
        if count >= TOGETHER * min(alone[part] for part in _judges(pair))
        and sum(len(part.text) for part in pair) <= MAX_CHARACTERS
        and not any(part.text.casefold() in known for part in pair)
    }


def _judges(pair: Sequence[NounPart]) -> Sequence[NounPart]:
    """Return the parts that are words by themselves; both where none is."""
    return [part for part in pair if part.stands_alone and len(part.text) > 1] or pair


def _merged(parts: Run, pairs: Collection[Run]) -> Run:
    found: list[NounPart] = []
    for part in parts:
        if found and (found[-1], part) in pairs:
            found[-1] = NounPart(found[-1].text + part.text, stands_alone=True)
        else:
            found.append(part)
    return tuple(found)


def _joined_as_known(run: Run, known: Collection[str]) -> Run:
    """Join parts to the longest known words, from the left."""
    found: list[NounPart] = []
    at = 0
    while at < len(run):
        ends = range(len(run), at + 1, -1)
        end = next((end for end in ends if "".join(part.text for part in run[at:end]).casefold() in known), at + 1)
        found.append(run[at] if end == at + 1 else NounPart("".join(part.text for part in run[at:end]), stands_alone=True))
        at = end
    return tuple(found)
