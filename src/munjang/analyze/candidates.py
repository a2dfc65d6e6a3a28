"""Texts → the phrases of each that could be its keywords, with every place where they stand.

Korean candidates are noun phrases, those of other languages runs of words between stop words (`text.phrases`); both stand verbatim in the
text, and a Korean one ends in a noun both in its text and when it is read by itself. Phrases of one text that differ in case or in the
width of a space are one, written as it stands first. Rare ones can be left out. Which ones are good is left to `keywords`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from munjang.errors import UsageError
from munjang.text.korean import has_hangul
from munjang.text.phrases import end_in_nouns, noun_phrases
from munjang.text.tagging import Tagger


@dataclass(frozen=True)
class Candidate:
    """A phrase of a text and all its places in the cleaned text."""

    text: str
    places: tuple[tuple[int, int], ...]


def candidates(
    texts: Sequence[str], *, words: tuple[int, int] = (1, 3), min_frequency: int = 1, by: Tagger | None = None
) -> list[list[Candidate]]:
    """Return the candidates of each text in the order in which they first stand there.

    `min_frequency` is how often a phrase must stand in all texts together.

    >>> from munjang.text.tagging import tagger
    >>> [c.text for c in candidates(["Rain and rain"], by=tagger("plain"))[0]]
    ['Rain']
    """
    if not 1 <= words[0] <= words[1]:
        raise UsageError(f"words are {words[0]} to {words[1]}, expected at least 1 and no more than the most")
    if min_frequency < 1:
        raise UsageError(f"min_frequency is {min_frequency}, expected at least 1")
    found: list[dict[str, Candidate]] = []
    total: Counter[str] = Counter()
    for spans in noun_phrases(texts, words=words, by=by):
        places: dict[str, list[tuple[int, int]]] = {}
        written: dict[str, str] = {}
        for span in spans:
            key = phrase_key(span.text)
            written.setdefault(key, span.text)
            places.setdefault(key, []).append((span.start, span.end))
        found.append({key: Candidate(written[key], tuple(at)) for key, at in places.items()})
        total.update({key: len(at) for key, at in places.items()})
    frequent = [{key: one for key, one in each.items() if total[key] >= min_frequency} for each in found]
    return _ending_in_nouns(frequent, by)


def _ending_in_nouns(found: list[dict[str, Candidate]], by: Tagger | None) -> list[list[Candidate]]:
    """Leave out Korean phrases that end in a particle or an ending when they are read by themselves."""
    korean = list(dict.fromkeys(one.text for each in found for one in each.values() if has_hangul(one.text)))
    doubtful = {text for text, good in zip(korean, end_in_nouns(korean, by=by), strict=True) if not good}
    return [[one for one in each.values() if one.text not in doubtful] for each in found]


def phrase_key(phrase: str) -> str:
    """Return what equal phrases have in common.

    >>> phrase_key("Heavy  Rain")
    'heavy rain'
    """
    return " ".join(phrase.split()).casefold()
