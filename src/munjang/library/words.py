"""Texts → the words by which a library finds them; questions → the words that are asked for.

A library says in its settings how its words were made, and is asked in the same way: by whom Korean was split, whether English words
stand there as their stems, which they do in every library that was made since there are stems (`munjang reencode` gives stems to an older
one), and with which dictionary of the user's, whose whole text is part of that setting. A dictionary's words stay whole, variants are
spelled as usual, and a question asks for synonyms as well. Hanja in a Korean text stand there by their readings too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import tee
from typing import get_args

from munjang.errors import InputError
from munjang.text.dictionary import Dictionary, parse_dictionary
from munjang.text.hanja import find_hanja, read_hanja
from munjang.text.korean import Analyser, has_hangul, morphemes, space_with_kiwi, tag_many_morphemes, tag_morphemes
from munjang.text.phrases import FUNCTION_WORDS, LIGHT_WORDS, stem
from munjang.text.pos_analysers import is_pos_name
from munjang.text.tagging import DICTIONARY_MARK

_STEMS, _DICTIONARY = "+stems", DICTIONARY_MARK
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_HANGUL = re.compile("[가-힣]")
UNSPACED = 10
"""Hangul syllables from which a question without a single space was written without them; names have fewer."""


@dataclass(frozen=True)
class WordAnalysis:
    """How the words of a library are made."""

    analyser: str
    """One of `Analyser`, or the name of an analyser with a `pos` method."""
    stems: bool
    dictionary: Dictionary


@lru_cache(maxsize=16)
def read_analysis(way: str) -> WordAnalysis:
    """Return what a library's setting says; an unknown analyser is read as pairs of characters."""
    base, _, entries = way.partition(_DICTIONARY)
    named = base.removesuffix(_STEMS)
    analyser = named if named == "kiwi" or is_pos_name(named) else "bigrams"
    return WordAnalysis(analyser, base.endswith(_STEMS), parse_dictionary(entries))


def with_stems(analyser: str) -> str:
    """Return the name of the way that this analyser makes the words of a new library.

    >>> with_stems("kiwi"), with_stems("kiwi+stems")
    ('kiwi+stems', 'kiwi+stems')
    """
    base, mark, entries = analyser.partition(_DICTIONARY)
    return base.removesuffix(_STEMS) + _STEMS + mark + entries


def with_dictionary(way: str, dictionary: Dictionary) -> str:
    """Return the same way with another dictionary; an empty one is none."""
    base = way.partition(_DICTIONARY)[0]
    return base + _DICTIONARY + dictionary.text if len(dictionary) else base


def without_dictionary(way: str) -> str:
    """Return a way's name for people, without the entries of its dictionary."""
    return way.partition(_DICTIONARY)[0]


def has_stems(way: str) -> bool:
    """Say whether English words stand in a library as their stems."""
    return without_dictionary(way).endswith(_STEMS)


def analyser_of(way: str) -> str:
    """Return who splits Korean in a library."""
    return read_analysis(way).analyser


def is_known(way: str) -> bool:
    """Say whether words can be made in this way.

    >>> is_known("kiwi+stems"), is_known("kiwi+stemr")
    (True, False)
    """
    try:
        read_analysis(way)
    except InputError:
        return False
    named = without_dictionary(way).removesuffix(_STEMS)
    return named in get_args(Analyser) or is_pos_name(named)


def passage_words(text: str, way: str) -> list[str]:
    """Return the words of a passage, in their order; behind them the readings of its Hanja, if it is Korean.

    >>> passage_words("It rained in Seoul", "bigrams+stems")
    ['it', 'rain', 'in', 'seoul']
    """
    return next(iterate_words([text], way))


def iterate_words(texts: Iterable[str], way: str) -> Iterator[list[str]]:
    """Yield the words of each passage; Kiwi reads many at once on all cores."""
    analysis = read_analysis(way)
    entries = analysis.dictionary
    spelled, texts = tee(texts)
    tagged = tag_many_morphemes(map(entries.spell, spelled), analyser=analysis.analyser, user_words=entries.user_words)
    for text, found in zip(texts, tagged, strict=True):
        readings = _read_hanja(text, analysis) if has_hangul(text) else []
        parts = [part for word, _ in found for part in _split_term(word, analysis)] if entries.terms else []
        yield [*((stem(word) if analysis.stems else word) for word, _ in found), *readings, *parts]


def _split(text: str, analysis: WordAnalysis) -> list[str]:
    words = analysis.dictionary
    return morphemes(words.spell(text), analyser=analysis.analyser, user_words=words.user_words)


@lru_cache(maxsize=1_024)
def _split_plainly(word: str, analyser: str) -> tuple[str, ...]:
    parts = tuple(morphemes(word, analyser=analyser))
    return parts if len(parts) > 1 else ()


def _split_term(word: str, analysis: WordAnalysis) -> tuple[str, ...]:
    """Return the parts of a dictionary's term, by which it is found as well."""
    return _split_plainly(word, analysis.analyser) if word in analysis.dictionary.terms else ()


def _read_hanja(text: str, analysis: WordAnalysis) -> list[str]:
    return [word for hanja in find_hanja(text) for reading in read_hanja(hanja) for word in _split(reading, analysis)]


def question_words(text: str, way: str) -> tuple[str, ...]:
    """Return the words to look for: without grammar ("the", 있다, 것), unless there are no others; WHO and US in capitals are no grammar.

    With a dictionary: without its stop words. Behind them stand other words for the same, as `list_alternatives` says.

    >>> question_words("Why does my dog bark?", "bigrams+stems"), question_words("to be or not to be", "bigrams")
    (('dog', 'bark'), ('to', 'be', 'or', 'not', 'to', 'be'))
    """
    return (*own_words(text, way), *list_alternatives(text, way))


def own_words(text: str, way: str) -> tuple[str, ...]:
    """Return the words of a question itself."""
    analysis = read_analysis(way)
    entries = analysis.dictionary
    found = tag_morphemes(entries.spell(text), analyser=analysis.analyser, user_words=entries.user_words)
    names = set() if text.isupper() else {name.casefold() for name in _CAPITALS.findall(text)}
    telling = [(word, tag) for word, tag in found if word not in FUNCTION_WORDS or word in names] or found
    content = [word for word, tag in telling if not is_light(word, tag)] or [word for word, _ in telling]
    if entries.stop_words:
        stops = {word for each in entries.stop_words for word in _split(each, analysis)}
        content = [word for word in content if word not in stops] or content
    return tuple(stem(word) for word in content) if analysis.stems else tuple(content)


def list_alternatives(text: str, way: str) -> tuple[str, ...]:
    """Return other words for the same: those of the dictionary's synonyms, and readings of Hanja."""
    analysis = read_analysis(way)
    synonyms: list[str] = []
    if analysis.dictionary.synonyms or analysis.dictionary.meanings:
        synonyms = _find_synonyms(_split(text, analysis), way)
    others = [*([stem(word) for word in synonyms] if analysis.stems else synonyms), *_read_hanja(text, analysis)]
    return tuple(dict.fromkeys(others))


def is_light(word: str, tag: str) -> bool:
    """Say whether a word carries grammar only."""
    return (word, tag.partition("-")[0]) in LIGHT_WORDS


def restore_spaces(text: str, way: str) -> str:
    """Return a question that was written without spaces with those that Kiwi would write; any other one as it is."""
    if analyser_of(way) != "kiwi" or any(ch.isspace() for ch in text) or len(_HANGUL.findall(text)) < UNSPACED:
        return text
    return space_with_kiwi(text, user_words=read_analysis(way).dictionary.user_words)


def _find_synonyms(words: list[str], way: str) -> list[str]:
    """Return the words of what the question's words mean, each once, without those that are asked for already."""
    asked = " ".join(["", *words, ""])
    others = [word for phrase, means in _meanings(way) if f" {phrase} " in asked for other in means for word in other.split()]
    return [word for word in dict.fromkeys(others) if word not in words]


@lru_cache(maxsize=16)
def _meanings(way: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return each phrase that finds others, and those, as their words with spaces between them."""
    analysis = read_analysis(way)
    entries = analysis.dictionary

    def split(phrase: str) -> str:
        return " ".join(_split(phrase, analysis))

    two_way = [(each, tuple(other for other in group if other != each)) for group in entries.synonyms for each in group]
    one_way = [(first, tuple(others)) for first, *others in entries.meanings]
    return [(split(phrase), tuple(map(split, others))) for phrase, others in (*two_way, *one_way) if split(phrase)]


def words_in_common(passage: str, asked: tuple[str, ...], way: str) -> tuple[str, ...]:
    """Return the words of a passage that were asked for, as they stand in it, in lower case and the order of the question.

    >>> words_in_common("It rained on snow. Rain!", ("snow", "rain"), "bigrams+stems")
    ('snow', 'rained', 'rain')
    """
    analysis = read_analysis(way)
    written: dict[str, dict[str, None]] = {word: {} for word in asked}
    for word in _split(passage, analysis):
        written.get(stem(word) if analysis.stems else word, {})[word] = None
    return tuple(form for forms in written.values() for form in forms)
