"""A text → its noun phrases and sentences, each with its exact place, and the nouns of its compounds.

A noun phrase is one or more words side by side on one line. A Korean word counts up to the particle or ending that hangs on it, so a phrase
stands verbatim in the text and never ends in a particle (josa) or an ending (eomi); a noun that is the stem of a verb (수립 in 수립하다) is
no phrase. A word of another language counts as it is written. Stop words end a phrase.

Places count characters of `unicode.clean(text)`; for NFC text that is the text itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from munjang.text.stopwords import is_stop_word
from munjang.text.tagging import Morpheme, Tagger, choose_tagger
from munjang.text.unicode import clean

NOUNS = frozenset(("NNG", "NNP", "SL", "SH", "W_HASHTAG"))
"""Tags of morphemes that can be a word by themselves."""
INSIDE = NOUNS | {"XPN", "XSN", "SN", "SO"}
"""Tags that a noun may be joined with: prefixes, suffixes, numbers, hyphens."""
MAX_WORD_CHARACTERS = 50
"""Longer runs without a space are no words: keys, addresses, noise."""

_COMPOUND = frozenset(("NNG", "NNP", "XSN"))  # what a Korean compound is made of
_LOOSE_SUFFIXES = frozenset(("들", "적", "상", "별", "당", "씩", "째", "하", "님", "이", "끼리", "가량", "짜리"))  # make no other noun
_PARTICLES = frozenset("가이은는을를도의만로와과에")  # an analyser may take one for a noun: 도로가
_VERB_MAKERS = ("XSV", "XSA", "XSM", "E", "VV", "VA", "VX")


class Span(NamedTuple):
    """A part of a text and where it stands: clean(text)[start:end] == span.text."""

    text: str
    start: int
    end: int


class NounPart(NamedTuple):
    """A noun, or a suffix that only lengthens one."""

    text: str
    stands_alone: bool


def find_noun_runs(texts: Iterable[str], *, by: Tagger | None = None) -> Iterator[list[list[NounPart]]]:
    """Yield the nouns of each text in runs: nouns and suffixes that touch, as in a compound, are one run; a prefix is part of its noun.

    Foreign words count and are runs of their own; stop words and suffixes that make no other noun (들, 적, 상, 별) end a run.

    >>> from munjang.text.tagging import choose_tagger
    >>> [part.text for run in next(find_noun_runs(["The rain of Seoul"], by=choose_tagger("plain"))) for part in run]
    ['rain', 'Seoul']
    """
    chosen = by or choose_tagger()
    kept = list(texts)
    for text, morphemes in zip(map(clean, kept), chosen.tag(kept), strict=True):
        runs: list[list[NounPart]] = []
        end = -1  # where the run that may go on ends
        for place, morpheme in enumerate(morphemes):
            part = _take_noun_part(text, morphemes, place)
            touches = morpheme.tag in _COMPOUND and morpheme.start - _take_prefix(morphemes, place) == end
            if part is None or (touches and morpheme.tag != "XSN" and part.text in _PARTICLES):
                end = end if morpheme.tag == "XPN" else -1
            elif touches:
                runs[-1].append(part)
                end = morpheme.end
            elif part.stands_alone:
                runs.append([part])
                end = morpheme.end if morpheme.tag in _COMPOUND else -1
        yield runs


def find_noun_phrases(texts: Iterable[str], *, words: tuple[int, int] = (1, 3), by: Tagger | None = None) -> Iterator[list[Span]]:
    """Yield the noun phrases of each text that have `words` (least, most) words, in the order of their places, shorter first.

    >>> from munjang.text.tagging import choose_tagger
    >>> found = next(find_noun_phrases(["The heavy rain of Seoul"], words=(1, 2), by=choose_tagger("plain")))
    >>> [span.text for span in found]
    ['heavy', 'heavy rain', 'rain', 'Seoul']
    """
    chosen = by or choose_tagger()
    kept = list(texts)
    for text, morphemes in zip(map(clean, kept), chosen.tag(kept), strict=True):
        adjectival = {m.end for m in morphemes if m.tag == "XSN" and m.form == "적"}  # 경제적 needs a noun behind it
        parts = (run[i : i + n] for run in _find_runs(text, morphemes) for i in range(len(run)) for n in _list_sizes(run, i, words))
        yield [_join(text, part) for part in parts if part[-1].end not in adjectival]


def end_in_nouns(phrases: Sequence[str], *, by: Tagger | None = None) -> list[bool]:
    """Return of each phrase whether it ends in no particle and no ending when it is read by itself.

    In its text an analyser can take a particle for a part of a name (문화재가); by itself it rarely makes the same mistake.
    """
    tagged = (by or choose_tagger()).tag(phrases)
    return [bool(morphemes) and not morphemes[-1].tag.startswith(("J", "E")) for morphemes in tagged]


def split_sentences(text: str, *, by: Tagger | None = None) -> list[Span]:
    """Return the sentences of a text, without the white space between them.

    >>> from munjang.text.tagging import choose_tagger
    >>> [span.text for span in split_sentences("It rains. I stay.", by=choose_tagger("plain"))]
    ['It rains.', 'I stay.']
    """
    places = (by or choose_tagger()).sentences(text)
    cleaned = clean(text)
    return [Span(cleaned[start:end], start, end) for start, end in places]


def _take_noun_part(text: str, morphemes: Sequence[Morpheme], place: int) -> NounPart | None:
    """Return the noun at a place, with the prefix before it, or the suffix; None for all else."""
    morpheme = morphemes[place]
    if morpheme.end <= morpheme.start:  # a form that is not written as such has no place of its own
        return None
    if morpheme.tag == "XSN":
        return None if morpheme.form in _LOOSE_SUFFIXES else NounPart(text[morpheme.start : morpheme.end], stands_alone=False)
    written = text[morpheme.start - _take_prefix(morphemes, place) : morpheme.end]
    return NounPart(written, stands_alone=True) if morpheme.tag in NOUNS and _is_word(written) else None


def _take_prefix(morphemes: Sequence[Morpheme], place: int) -> int:
    """Return how many characters the prefix right before a noun has."""
    before = morphemes[place - 1] if place else None
    is_prefix = before is not None and before.tag == "XPN" and before.end == morphemes[place].start and morphemes[place].tag in _COMPOUND
    return before.end - before.start if before is not None and is_prefix else 0


def _list_sizes(run: Sequence[Span], start: int, words: tuple[int, int]) -> range:
    return range(words[0], min(words[1], len(run) - start) + 1)


def _find_runs(text: str, morphemes: Sequence[Morpheme]) -> Iterator[list[Span]]:
    """Yield runs of words between which there is nothing but a space."""
    run: list[Span] = []
    for word in _find_words(text, morphemes):
        between = text[run[-1].end : word.start] if run else ""
        if run and (between.strip(" \u00a0\u3000") or not between):
            yield run
            run = []
        if _is_word(word.text):
            run.append(word)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _find_words(text: str, morphemes: Sequence[Morpheme]) -> Iterator[Span]:
    """Yield the nominal words of a text, whole up to what hangs on them."""
    at = 0
    while at < len(morphemes):
        stop = at
        while stop < len(morphemes) and morphemes[stop].tag in INSIDE and (stop == at or _touch(morphemes, stop - 1)):
            stop += 1
        word = _trim(morphemes[at:stop])
        if word and _stands_alone(morphemes, at, stop):
            yield _make_span(text, word)
        at = max(stop, at + 1)


def _trim(word: Sequence[Morpheme]) -> Sequence[Morpheme]:
    """Take hyphens off both ends and prefixes off the end; nothing is left of a word without a noun."""
    start, stop = 0, len(word)
    while start < stop and word[start].tag in ("SO", "XSN"):
        start += 1
    while start < stop and word[stop - 1].tag in ("SO", "XPN"):
        stop -= 1
    kept = word[start:stop]
    whole = all(m.end > m.start for m in kept)  # a form that is not written as such has no place of its own
    return kept if whole and any(m.tag in NOUNS for m in kept) else []


def _stands_alone(morphemes: Sequence[Morpheme], at: int, stop: int) -> bool:
    """Return whether a word begins at a word's beginning and is no verb's stem."""
    before = morphemes[at - 1].tag if at and _touch(morphemes, at - 1) else "SW"
    after = morphemes[stop].tag if stop < len(morphemes) and _touch(morphemes, stop - 1) else "SW"
    return before.startswith("S") and not after.startswith(_VERB_MAKERS)


def _touch(morphemes: Sequence[Morpheme], left: int) -> bool:
    return morphemes[left + 1].start <= morphemes[left].end


def _is_word(word: str) -> bool:
    return len(word) <= MAX_WORD_CHARACTERS and not is_stop_word(word) and not (len(word) == 1 and word.isascii())


def _make_span(text: str, morphemes: Sequence[Morpheme]) -> Span:
    start, end = morphemes[0].start, morphemes[-1].end
    return Span(text[start:end], start, end)


def _join(text: str, words: Sequence[Span]) -> Span:
    return Span(text[words[0].start : words[-1].end], words[0].start, words[-1].end)
