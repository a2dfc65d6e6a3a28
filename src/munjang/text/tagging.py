"""A text → its morphemes, each with a tag and its exact place; one interface over several analysers.

Tags are Kiwi's (Sejong): NNG and NNP are nouns, J… particles, E… endings, SL foreign letters, SN numbers. Three taggers give them:

    KiwiTagger   Kiwi, the best there is for Korean (extra `korean`)
    PosTagger    any object with a `pos(text)` method, such as KoNLPy's; places are found by searching forward in the text
    PlainTagger  rules only: words at word boundaries; a Hangul word loses what looks like a particle. Inexact, and a note says so

Text without Hangul is tagged by the plain rules whatever the tagger. Places count characters of the cleaned text (`unicode.clean`), so NFC
and NFD give the same answer. Which morphemes make a noun phrase is left to `phrases`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from munjang.errors import MissingExtra, UsageError, shown
from munjang.text import korean
from munjang.text.foreign_tags import sejong_tag
from munjang.text.kiwi import check_user_words, kiwi_is_installed, kiwi_sentences, kiwi_tokens_of_each
from munjang.text.plain_words import plain_morphemes, plain_sentences
from munjang.text.unicode import clean

_FAR = 40  # characters in which the next morpheme of a foreign analyser is sought


class Morpheme(NamedTuple):
    """A form as the analyser writes it, its tag, and where it stands: text[start:end]."""

    form: str
    tag: str
    start: int
    end: int


class Tagger(Protocol):
    """Turns texts into morphemes with places."""

    @property
    def name(self) -> str:
        """What made the morphemes; goes into files, so that they can be made again."""
        ...

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text, in the order of their places."""
        ...

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends."""
        ...


def tagger(analyser: Any = None, *, user_words: Iterable[str] = ()) -> Tagger:
    """Return a tagger: the best there is, one by its name ("kiwi", "plain"), or one around an object with a `pos()` method.

    `user_words` are nouns that Kiwi shall keep whole.

    >>> tagger("plain").name
    'plain'
    """
    words = check_user_words(user_words)
    if hasattr(analyser, "tag") and hasattr(analyser, "sentences"):
        return analyser  # type: ignore[no-any-return]  # a tagger already
    if hasattr(analyser, "pos"):
        return PosTagger(analyser)
    if analyser == "plain" or (analyser is None and not kiwi_is_installed()):
        return PlainTagger(noted=analyser is None)
    if analyser not in (None, "kiwi"):
        raise UsageError(f"the analyser {shown(str(analyser))} is unknown, expected kiwi, plain, or an object with a pos() method")
    if not kiwi_is_installed():
        raise MissingExtra("finding Korean nouns with Kiwi", "korean")
    return KiwiTagger(words)


class KiwiTagger:
    """Tags by Kiwi."""

    def __init__(self, user_words: tuple[str, ...] = ()) -> None:
        self.user_words = user_words

    @property
    def name(self) -> str:
        """Kiwi's name."""
        return "kiwi"

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text; runs of texts with Hangul go through Kiwi on all cores."""
        for cleaned, answers in _with_answers(texts, self.user_words):
            if answers is None:
                yield _plain(cleaned)
            else:
                yield [Morpheme(t.form, str(t.tag), at + t.start, at + t.end) for at, t in answers]

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends."""
        text = clean(text)
        return kiwi_sentences(text, user_words=self.user_words) if korean.has_hangul(text) else plain_sentences(text)


class PosTagger:
    """Tags by an object with a `pos(text)` method that returns (form, tag) pairs, such as KoNLPy's Okt, Komoran, Kkma, Hannanum, Mecab."""

    def __init__(self, analyser: Any) -> None:
        self.analyser = analyser

    @property
    def name(self) -> str:
        """The analyser's class."""
        return f"pos:{type(self.analyser).__name__}"

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text."""
        for text in texts:
            cleaned = clean(text)
            yield _placed(cleaned, self.analyser.pos(cleaned)) if korean.has_hangul(cleaned) else _plain(cleaned)

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends, by punctuation."""
        return plain_sentences(clean(text))


class PlainTagger:
    """Tags by rules alone."""

    def __init__(self, *, noted: bool = False) -> None:
        self.noted = noted

    @property
    def name(self) -> str:
        """The rules' name."""
        return "plain"

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text; the first Hangul brings a note unless the caller asked for plain rules."""
        for text in texts:
            cleaned = clean(text)
            if self.noted and korean.has_hangul(cleaned):
                korean.note_missing_kiwi()
            yield _plain(cleaned)

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends, by punctuation."""
        return plain_sentences(clean(text))


def _plain(cleaned: str) -> list[Morpheme]:
    return [Morpheme(*found) for found in plain_morphemes(cleaned)]


def _with_answers(texts: Iterable[str], words: tuple[str, ...]) -> Iterator[tuple[str, list[tuple[int, Any]] | None]]:
    """Yield each cleaned text with Kiwi's tokens, or with None if it holds no Hangul; an empty text costs Kiwi nothing."""
    kept: deque[str] = deque()

    def for_kiwi() -> Iterator[str]:
        for text in texts:
            cleaned = clean(text)
            kept.append(cleaned)
            yield cleaned if korean.has_hangul(cleaned) else ""

    for answers in kiwi_tokens_of_each(for_kiwi(), user_words=words):
        cleaned = kept.popleft()
        yield cleaned, answers if korean.has_hangul(cleaned) else None


def _placed(text: str, pairs: Iterable[tuple[str, str]]) -> list[Morpheme]:
    """Give pairs of form and tag their places; a form that does not stand in the text as such gets an empty place."""
    found: list[Morpheme] = []
    at = 0
    for form, tag in pairs:
        start = text.find(form, at, at + _FAR + len(form)) if form else -1
        skipped = text[at:start].split() if start >= 0 else []
        if start < 0 or len(skipped) > 1:  # more than the rest of one word lies between: not the next morpheme
            found.append(Morpheme(form, sejong_tag(tag), at, at))
            continue
        at = start + len(form)
        found.append(Morpheme(form, sejong_tag(tag), start, at))
    return found
