"""Texts → the words by which a library finds them; questions → the words that are asked for.

A library says in its settings how its words were made, and is asked in the same way: by whom Korean was split, and whether English words
stand there as their stems, which they do in every library that was made since there are stems. `munjang reencode` gives stems to an older
one.
"""

from __future__ import annotations

import re
from typing import get_args

from munjang.text.korean import Analyser, morphemes, tagged_morphemes
from munjang.text.phrases import FUNCTION_WORDS, LIGHT_WORDS, stem

_STEMS = "+stems"
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")


def with_stems(analyser: str) -> str:
    """Return the name of the way that this analyser makes the words of a new library.

    >>> with_stems("kiwi"), with_stems("kiwi+stems")
    ('kiwi+stems', 'kiwi+stems')
    """
    return analyser.removesuffix(_STEMS) + _STEMS


def has_stems(way: str) -> bool:
    """Say whether English words stand in a library as their stems."""
    return way.endswith(_STEMS)


def analyser_of(way: str) -> Analyser:
    """Return who splits Korean in a library."""
    return "kiwi" if way.removesuffix(_STEMS) == "kiwi" else "bigrams"


def is_known(way: str) -> bool:
    """Say whether words can be made in this way.

    >>> is_known("kiwi+stems"), is_known("kiwi+stemr")
    (True, False)
    """
    return way.removesuffix(_STEMS) in get_args(Analyser)


def passage_words(text: str, way: str) -> list[str]:
    """Return the words of a passage, in their order.

    >>> passage_words("It rained in Seoul", "bigrams+stems")
    ['it', 'rain', 'in', 'seoul']
    """
    found = morphemes(text, analyser=analyser_of(way))
    return [stem(word) for word in found] if has_stems(way) else found


def question_words(text: str, way: str) -> tuple[str, ...]:
    """Return the words to look for: without grammar ("the", 있다, 것), unless there are no others; WHO and US in capitals are no grammar.

    >>> question_words("Why does my dog bark?", "bigrams+stems"), question_words("to be or not to be", "bigrams")
    (('dog', 'bark'), ('to', 'be', 'or', 'not', 'to', 'be'))
    """
    found = tagged_morphemes(text, analyser=analyser_of(way))
    names = set() if text.isupper() else {name.casefold() for name in _CAPITALS.findall(text)}
    telling = [(word, tag) for word, tag in found if word not in FUNCTION_WORDS or word in names] or found
    content = [word for word, tag in telling if (word, tag.partition("-")[0]) not in LIGHT_WORDS] or [word for word, _ in telling]
    return tuple(stem(word) for word in content) if has_stems(way) else tuple(content)


def words_in_common(passage: str, asked: tuple[str, ...], way: str) -> tuple[str, ...]:
    """Return the words of a passage that were asked for, as they stand in it, in lower case and the order of the question.

    >>> words_in_common("It rained on snow. Rain!", ("snow", "rain"), "bigrams+stems")
    ('snow', 'rained', 'rain')
    """
    written: dict[str, dict[str, None]] = {word: {} for word in asked}
    for word in morphemes(passage, analyser=analyser_of(way)):
        written.get(stem(word) if has_stems(way) else word, {})[word] = None
    return tuple(form for forms in written.values() for form in forms)
