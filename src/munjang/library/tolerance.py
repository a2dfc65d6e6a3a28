"""A question as it was typed → as it was meant, by the words that the library holds.

A question is changed only where a word of it stands in no passage and another reading of it stands in some:

1. slips of the finger: Kiwi reads the question once more and may take one letter of a word for that of a neighbouring key;
2. names that Kiwi does not know either: the library's word that differs by one letter is looked for, too;
3. what is written apart there or here: 바람막이 also finds 바람 막이, and the other way;
4. 초성: ㅎㄱㄷ looks for the words of the library that begin so, such as 홍길동.

A question without spaces is given some for its meaning; its words are found without them. All of this needs Kiwi.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from munjang.library.store import MAX_WORDS, Store
from munjang.library.words import analyser_of, is_light, list_alternatives, own_words, question_words, read_analysis, restore_spaces
from munjang.text.hangul import INITIALS, is_syllable, join_syllable, list_slips, split_syllable, take_initials
from munjang.text.korean import has_hangul, is_content_tag, join_with_kiwi, prepare_for_question, tag_mistyped_with_kiwi, tag_with_kiwi
from munjang.text.phrases import FUNCTION_WORDS

MOST_CHARACTERS = 10_000
"""Characters of a question that are looked at for words."""
LONGEST = 500
"""Characters of a question that is corrected; who writes more has written a text."""
SHORTEST_NAME = 3
"""Syllables of a name that may be another one by one letter; of shorter ones too many differ by one."""
SHORTEST_PART = 2
LONGEST_NAMES = 40
"""Characters of a question whose spaces may stand in wrong places; longer ones are sentences."""
MOST_NAMES = 10
"""Words that 초성 may stand for; the most frequent ones count."""

_EOJEOL = re.compile(r"\S+")
_TYPED_INITIALS = re.compile(rf"(?<![ㄱ-ㅣ])[{INITIALS}]{{2,20}}(?![ㄱ-ㅣ])")


@dataclass(frozen=True)
class AskedQuestion:
    """What is compared of a question."""

    text: str
    """What is encoded."""
    words: tuple[str, ...]
    """What is looked for."""
    is_corrected: bool = False
    """Whether the text says something else than what was typed, spaces aside."""


def ask_as_typed(text: str, way: str) -> AskedQuestion:
    """Return a question as it is."""
    return AskedQuestion(text, question_words(text[:MOST_CHARACTERS], way))


def ask_as_meant(text: str, way: str, store: Store) -> AskedQuestion:
    """Return a question with what the library holds in the place of what it does not."""
    if analyser_of(way) != "kiwi" or len(text) > LONGEST or not has_hangul(text):
        return ask_as_typed(text, way)
    entries = read_analysis(way).dictionary
    prepare_for_question(entries.spell(text), user_words=entries.user_words)
    own, alternatives = own_words(text, way), list_alternatives(text, way)
    joined = list(_list_joined(text, own))
    held = _find_held([*own, *alternatives, *joined], store)
    asked = AskedQuestion(restore_spaces(text, way), own)
    if any(word not in held and has_hangul(word) for word in own):
        asked = _correct(asked, way, store)
    respaced = None if asked.is_corrected else _read_without_spaces(text, own, held, way, store)
    if respaced is not None:
        return respaced
    asked = _read_initials(asked, store)
    others = [*(word for word in alternatives if word in held), *(word for word in joined if word in held)]
    return replace(asked, words=tuple(dict.fromkeys((*asked.words, *others))))


def _read_without_spaces(text: str, own: Sequence[str], held: set[str], way: str, store: Store) -> AskedQuestion | None:
    """Return a short question with its spaces in other places, if the library holds all its words then and did not before."""
    if len(text) > LONGEST_NAMES or len(text.split()) < 2 or all(word in held for word in own):
        return None
    joined = read_analysis(way).dictionary.spell("".join(text.split()))
    words, others = own_words(joined, way), list_alternatives(joined, way)
    found = _find_held([*words, *others], store)
    if not words or len(words) > len(own) or not all(word in found for word in words):
        return None
    spaced = restore_spaces(joined, way)
    return AskedQuestion(spaced, tuple(dict.fromkeys((*words, *(word for word in others if word in found)))), is_corrected=False)


def _find_held(words: Iterable[str], store: Store) -> set[str]:
    """Return those of the words that stand in some passage."""
    asked = [word for word in dict.fromkeys(words) if word and "\x00" not in word][:MAX_WORDS]
    _, counts = store.word_frequencies(asked)
    return {word for word, passages in zip(asked, counts, strict=True) if passages} if asked else set()


def _list_joined(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield what two neighbouring words of the question make when they are written together: 그늘막 텐트 → 그늘막텐트."""
    nouns = []
    for eojeol in text.casefold().split():
        taken = ""
        for word in words:  # in their order; a stem that is written otherwise is passed over
            taken += word if eojeol.startswith(taken + word) else ""
        nouns.append((eojeol, taken if has_hangul(taken) else ""))
    yield from (whole + taken for (whole, before), (_, taken) in pairwise(nouns) if taken and before == whole)


def _correct(asked: AskedQuestion, way: str, store: Store) -> AskedQuestion:
    """Return the question with its slips corrected, and with the library's words for names and compounds that it does not hold."""
    entries = read_analysis(way).dictionary
    text = entries.spell(asked.text)
    typed = [token for _, token in tag_with_kiwi(text, user_words=entries.user_words)]
    meant = tag_mistyped_with_kiwi(text, user_words=entries.user_words)
    held = _find_held(_forms([*typed, *meant]), store)
    parts: list[str] = []
    stands_for: dict[str, tuple[str, ...]] = {}
    last = 0
    for eojeol in _EOJEOL.finditer(text):
        start, end = eojeol.span()
        own, other = ([token for token in tokens if start <= token.start < end] for tokens in (typed, meant))
        unheld, still = ([form for form in _forms(tokens) if form not in held] for tokens in (own, other))
        is_slip = len(still) < len(unheld) and any(token.typo_cost for token in other)
        parts += [text[last:start], join_with_kiwi(other).replace(" ", "") if is_slip else eojeol[0]]
        last = end
        names = {token.form.casefold() for token in (other if is_slip else own) if token.oov}
        stands_for |= {form: _find_meant(form, way, store, is_name=form in names) for form in (still if is_slip else unheld)}
    corrected = "".join((*parts, text[last:]))
    words = asked.words if corrected == asked.text else own_words(corrected, way)
    words = tuple(other for word in words for other in stands_for.get(word) or (word,))
    return AskedQuestion(corrected, words, is_corrected=corrected != asked.text)


def _forms(tokens: Iterable[Any]) -> list[str]:
    """Return the words of content among tokens of Hangul."""
    found = [(token.form.casefold(), str(token.tag)) for token in tokens if is_content_tag(token.tag) and has_hangul(token.form)]
    return [form for form, tag in found if form not in FUNCTION_WORDS and not is_light(form, tag)]


def _find_meant(word: str, way: str, store: Store, *, is_name: bool) -> tuple[str, ...]:
    """Return what the library holds in the place of a word that it does not: a name like it, or the two words that it is made of."""
    near = _find_near(word, store) if is_name else None
    if near is not None:
        return (near,)
    for at in range(len(word) - SHORTEST_PART, SHORTEST_PART - 1, -1):
        parts = own_words(f"{word[:at]} {word[at:]}", way)
        if len(_find_held(parts, store)) == len(set(parts)):
            return parts
    return ()


def _find_near(word: str, store: Store) -> str | None:
    """Return the most frequent of the library's words that differ from a name by one letter; a suffix of one syllable may be too much."""
    if not all(map(is_syllable, word)):
        return None
    for name in (word, word[:-1]):
        if len(name) < SHORTEST_NAME:
            continue
        found = store.words_between(name[0], chr(ord(name[0]) + 1))
        for first in list_slips(name[0]):
            found |= store.words_between(first + name[1], first + chr(ord(name[1]) + 1))
        near = [other for other in found if len(other) == len(name) and _count_other_letters(name, other) == 1]
        if near:
            return max(near, key=lambda other: (found[other], other))
    return None


def _count_other_letters(word: str, other: str) -> int:
    pairs = [pair for pair in zip(word, other, strict=True) if pair[0] != pair[1]]
    if len(pairs) != 1 or not is_syllable(pairs[0][1]):
        return len(pairs) * 3
    return sum(one != two for one, two in zip(*map(split_syllable, pairs[0]), strict=True))


def _read_initials(asked: AskedQuestion, store: Store) -> AskedQuestion:
    """Return the question with the library's words in the place of 초성."""
    text, words = asked.text, list(asked.words)
    for typed in dict.fromkeys(_TYPED_INITIALS.findall(text)):
        at = INITIALS.index(typed[0])
        first, last = join_syllable(typed[0], "ㅏ"), join_syllable(INITIALS[at + 1], "ㅏ") if at + 1 < len(INITIALS) else "\ud7a4"
        found = {word: passages for word, passages in store.words_between(first, last).items() if take_initials(word) == typed}
        names = sorted(found, key=lambda word: (-found[word], word))[:MOST_NAMES]
        if names:
            text = text.replace(typed, names[0])
            words = [word for word in words if word not in typed] + names
    return AskedQuestion(text, tuple(words), asked.is_corrected or text != asked.text)
