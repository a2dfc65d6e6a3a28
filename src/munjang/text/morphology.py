"""A text → its sentences and their morphemes, each with a tag, a lemma and its exact place: what Kiwi says, word for word.

Tags are Kiwi's (Sejong's set and a few more). The lemma of a verb or an adjective ends in 다, as in a dictionary; any other morpheme is its
own. Places count characters of the cleaned text (`unicode.clean`), so NFC and NFD give the same answer. Morphemes may share a place: in
갔다 the stem 가 and the ending 었 stand in one syllable.

Which words a library searches by is left to `korean`, noun phrases to `phrases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from munjang.errors import MissingExtra
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.text.korean import check_user_words, kiwi_is_installed, split_each_with_kiwi
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_texts
from munjang.wording import brief_repr

NOUN_TAGS = ("NNG", "NNP", "NNB", "NR", "NP")
"""Common, proper and dependent nouns, numerals and pronouns: what Korean grammar calls 체언."""


@brief_repr
@dataclass(frozen=True)
class Morph:
    """A morpheme: its form as Kiwi writes it, its tag, its lemma, and where it stands in the text."""

    form: str
    tag: str
    lemma: str
    start: int
    end: int

    @property
    def is_noun(self) -> bool:
        """Whether the tag is that of a noun, a pronoun or a numeral."""
        return self.tag in NOUN_TAGS


@brief_repr
@dataclass(frozen=True)
class Sentence:
    """A sentence, where it stands in its text, and its morphemes."""

    text: str
    start: int
    end: int
    morphs: tuple[Morph, ...]


@brief_repr
@dataclass(frozen=True)
class Morphology(Table):
    """A text as it was analysed (in NFC), and its sentences."""

    columns: ClassVar[tuple[str, ...]] = ("form", "tag", "lemma", "start", "end")

    text: str
    sentences: tuple[Sentence, ...]

    def to_rows(self) -> list[Row]:
        """Return the morphemes, in their order."""
        return [asdict(morph) for morph in self.morphs]

    @property
    def morphs(self) -> tuple[Morph, ...]:
        """The morphemes of all sentences, in their order."""
        return tuple(morph for sentence in self.sentences for morph in sentence.morphs)

    @property
    def nouns(self) -> list[str]:
        """The forms of all nouns, in their order, as often as they stand there."""
        return [morph.form for morph in self.morphs if morph.is_noun]


def analyse(
    texts: Iterable[str],
    *,
    nouns: Annotated[bool, Option("Only nouns, pronouns and numerals.", flags=("--nouns",))] = False,
    keep_names: Annotated[
        bool, Option("Keep names of several words whole, as Kiwi does by default.", flags=("--keep-names/--split-names",))
    ] = True,
    user_words: Annotated[Sequence[str], Option("A noun that must stay whole; may be repeated.", flags=("--user-word",))] = (),
) -> list[Morphology]:
    """Return the sentences and morphemes of each text, as Kiwi finds them; needs the extra `korean`.

    `nouns` leaves out all other morphemes. Names of several words (런던 히드로 공항) are one morpheme; without `keep_names` each of their
    words is, as in the words of a library, and Kiwi needs less memory. `user_words` are proper nouns that Kiwi does not know.

    >>> [sunny] = analyse(["날씨가 맑다"])                # doctest: +SKIP
    >>> [(m.form, m.tag, m.lemma) for m in sunny.morphs]  # doctest: +SKIP
    [('날씨', 'NNG', '날씨'), ('가', 'JKS', '가'), ('맑', 'VA', '맑다'), ('다', 'EF', '다')]
    """
    check_options(analyse, locals())
    words = check_user_words(user_words)
    if not kiwi_is_installed():
        raise MissingExtra("splitting Korean into morphemes", "korean")
    cleaned = [clean(text) for text in validate_texts(texts)]
    answers = split_each_with_kiwi(cleaned, user_words=words, keep_names=keep_names)
    return [
        Morphology(text, tuple(_sentence(text, at, sentence, nouns) for at, sentence in answer))
        for text, answer in zip(cleaned, answers, strict=True)
    ]


def _sentence(text: str, at: int, sentence: Any, nouns: bool) -> Sentence:
    start, end = at + sentence.start, at + sentence.end
    morphs = (Morph(token.form, str(token.tag), token.lemma, at + token.start, at + token.end) for token in sentence.tokens)
    return Sentence(text[start:end], start, end, tuple(morph for morph in morphs if morph.is_noun or not nouns))
