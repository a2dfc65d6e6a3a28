"""A text → its morphemes, each with a tag and its exact place; one interface over several analysers.

Tags are Kiwi's (Sejong): NNG and NNP are nouns, J… particles, E… endings, SL foreign letters, SN numbers. Three taggers give them:

    KiwiTagger   Kiwi, the best there is for Korean (extra `korean`)
    PosTagger    any object with a `pos(text)` method, such as KoNLPy's; places are found by searching forward in the text
    PlainTagger  rules only: words at word boundaries; a Hangul word loses what looks like a particle. Inexact, and a note says so

A DictionaryTagger is one of them with a user's dictionary: words stay whole (Kiwi's), stop words are no nouns.

Text without Hangul is tagged by the plain rules whatever the tagger. Places count characters of the cleaned text (`unicode.clean`), so NFC
and NFD give the same answer. Which morphemes make a noun phrase is left to `phrases`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from munjang.errors import MissingExtra, UsageError, quote
from munjang.text import korean
from munjang.text.dictionary import Dictionary, parse_dictionary
from munjang.text.korean import check_user_words, kiwi_is_installed, split_sentences_with_kiwi, tag_each_with_kiwi
from munjang.text.pos_analysers import INSTALLED, MARK, PosAnalyser, find_analyser, is_pos_name
from munjang.text.unicode import clean

_NAMES = {
    "Noun": "NNG",
    "ProperNoun": "NNP",
    "Alpha": "SL",
    "Foreign": "SL",
    "Number": "SN",
    "Hashtag": "W_HASHTAG",
    "Josa": "JX",
    "Eomi": "EF",
    "PreEomi": "EP",
    "Verb": "VV",
    "Adjective": "VA",
    "Adverb": "MAG",
    "Determiner": "MM",
    "Modifier": "MM",
    "Conjunction": "MAJ",
    "Exclamation": "IC",
    "Suffix": "XSN",
    "VerbPrefix": "VV",
    "Punctuation": "SF",
    "KoreanParticle": "IC",
    "OL": "SL",
    "OH": "SH",
    "ON": "SN",
    "NNM": "NNB",
    "N": "NNG",
    "NC": "NNG",
    "NQ": "NNP",
    "NB": "NNB",
    "NN": "NR",
    "P": "VV",
    "J": "JX",
    "E": "EF",
    "M": "MAG",
    "X": "XSV",
    "S": "SF",
    "F": "SL",
    "SY": "SW",
}


def to_sejong_tag(tag: str) -> str:
    """Return the Sejong tag that means the same; of a joined tag the last part, because what a word ends with decides.

    >>> to_sejong_tag("Noun"), to_sejong_tag("NNG+JKO"), to_sejong_tag("NNP")
    ('NNG', 'JKO', 'NNP')
    """
    last = tag.rpartition("+")[2]
    return _NAMES.get(last, last)


_HANGUL = "\uac00-\ud7af\u1100-\u11ff\u3130-\u318f"
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(
    rf"(?P<hangul>[{_HANGUL}]+)|(?P<han>[{_HAN}]+)|(?P<number>\d[\d.,]*\d|\d)|(?P<letters>[^\W\d_{_HANGUL}{_HAN}][^\W_{_HANGUL}{_HAN}]*)"
    r"|(?P<mark>[^\w\s]|_)"
)
_PARTICLES = sorted(
    """
    은 는 이 가 을 를 의 에 에서 에게 에게서 께 께서 로 으로 와 과 도 만 까지 부터 보다 처럼 마다 조차 밖에 이나 나 라도 이라도 이며
    에는 에도 에서는 에서도 으로는 으로도 로는 로도 와의 과의 에의 으로의 로의 까지의 부터의 에게는 이란 란 이라는 라는 에만 만을 만이
    들은 들이 들을 들의 들에게
    """.split(),  # noqa: SIM905
    key=len,
    reverse=True,
)
_OFTEN_PART_OF_A_WORD = frozenset("이가나로도만의과와란은")
_VERBS = re.compile(
    "(?:다|요|죠|니까|습니까|는데|지만|면서|하는|되는|있는|없는|하고|하여|하면|하지|하게|하기|되어|되고|하며|되며|위해|위한|통해|대한|대해|관한|따라|따른|했던|하던|"
    "하도록|되도록|하였음|있음|없음|것임|했음|됐음|되었음|함|됨|임)$"
)
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？][」』”’]*|\n\s*\n")
_ABBREVIATIONS = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|e\.g|i\.e|cf|Inc|Ltd|Co|Jr|Sr)|\b[A-Z]|\b\d+)\.$")


def split_plain_morphemes(text: str) -> list[tuple[str, str, int, int]]:
    """Return the words of a text with a tag and their place.

    >>> split_plain_morphemes("비가 heavy")
    [('비', 'NNG', 0, 1), ('가', 'JX', 1, 2), ('heavy', 'SL', 3, 8)]
    """
    found: list[tuple[str, str, int, int]] = []
    for word in _WORDS.finditer(text):
        start, end, kind = word.start(), word.end(), word.lastgroup
        if kind == "hangul":
            found += _split_hangul(word.group(), start)
        else:
            tag = {"han": "SH", "number": "SN", "letters": "SL"}.get(kind or "", "SO" if word.group() == "-" else "SW")
            found.append((word.group(), tag, start, end))
    return found


def split_plain_sentences(text: str) -> list[tuple[int, int]]:
    """Return where each sentence starts and ends: at . ! ? before white space, at 。 and at empty lines.

    >>> split_plain_sentences("It rains. Dr. Kim stays.")
    [(0, 9), (10, 24)]
    """
    places, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        before = text[start : end.end()]
        if _ABBREVIATIONS.search(before) and not before.endswith("\n"):
            continue
        places.append((start, end.end()))
        start = end.end()
    places.append((start, len(text)))
    return [trimmed for place in places if (trimmed := _trim(text, *place))]


def _split_hangul(word: str, start: int) -> list[tuple[str, str, int, int]]:
    end = start + len(word)
    particle = next((p for p in _PARTICLES if word.endswith(p) and len(word) > len(p)), "")
    stem = word[: len(word) - len(particle)]
    if word in _PARTICLES:
        return [(word, "JX", start, end)]
    if _VERBS.search(word) and len(word) > 1:
        return [(word, "VV", start, end)]
    short = len(word) == 2 and particle in _OFTEN_PART_OF_A_WORD
    # A word of two characters more often ends in its own last one (나이, 종이) than in a particle, unless the particle is a sure one.
    if not particle or (short and not _sure(stem, particle)):
        return [(word, "NNG", start, end)]
    middle = start + len(stem)
    return [(stem, "NNG", start, middle), (particle, "JX", middle, end)]


def _sure(stem: str, particle: str) -> bool:
    """Return whether the last consonant before a particle is the one that this particle wants; 가 and 는 follow vowels only."""
    closed = (ord(stem[-1]) - 0xAC00) % 28 > 0 if "가" <= stem[-1] <= "힣" else False
    return {"이": closed, "은": closed, "과": closed, "가": not closed, "와": not closed}.get(particle, False)


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    inner = text[start:end]
    if not inner.strip():
        return None
    return start + len(inner) - len(inner.lstrip()), end - (len(inner) - len(inner.rstrip()))


DICTIONARY_MARK = "+dictionary\n"
"""What stands between the name of an analyser and the entries of a dictionary, in files."""
_STOPPED = "W_STOP"  # the tag of a word that a dictionary leaves out
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


def choose_tagger(analyser: Any = None, *, user_words: Iterable[str] = (), dictionary: Dictionary | None = None) -> Tagger:
    """Return a tagger: the best there is, one by its name, or one around an object with a `pos()` method.

    Names are kiwi, plain, those of `pos_analysers` where they are installed (mecab, okt, komoran), and a tagger's own `name`, as files
    hold it. `user_words` are nouns that Kiwi shall keep whole; a dictionary has such words as well, spellings and stop words.

    >>> choose_tagger("plain").name
    'plain'
    """
    own = dictionary or Dictionary()
    if isinstance(analyser, str):
        analyser, _, entries = analyser.partition(DICTIONARY_MARK)
        own = parse_dictionary(entries) if entries and dictionary is None else own
    more = (word.partition("\t") for word in check_user_words(user_words))
    own = replace(own, words=tuple(sorted({*own.words, *((form, tag or "NNP") for form, _, tag in more)})), synonyms=(), meanings=())
    tagger = _choose_plain_tagger(analyser or None, own.user_words)
    return DictionaryTagger(tagger, own) if len(own) else tagger


def _choose_plain_tagger(analyser: Any, words: tuple[str, ...]) -> Tagger:
    if hasattr(analyser, "tag") and hasattr(analyser, "sentences"):
        return analyser  # type: ignore[no-any-return]  # a tagger already
    if isinstance(analyser, PosAnalyser):
        return PosTagger(analyser)
    if isinstance(analyser, str) and (analyser.lower() in INSTALLED or is_pos_name(analyser.lower())):
        return PosTagger(find_analyser(analyser.lower()), analyser)
    if analyser == "plain" or (analyser is None and not kiwi_is_installed()):
        return PlainTagger(noted=analyser is None)
    if analyser not in (None, "kiwi"):
        known = f"kiwi, plain, {', '.join(INSTALLED)}, or an object with a pos() method"
        raise UsageError(f"the analyser {quote(str(analyser))} is unknown, expected {known}")
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
        for cleaned, answers in _check_answers(texts, self.user_words):
            if answers is None:
                yield _tag_plainly(cleaned)
            else:
                yield [Morpheme(t.form, str(t.tag), at + t.start, at + t.end) for at, t in answers]

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends."""
        text = clean(text)
        return split_sentences_with_kiwi(text, user_words=self.user_words) if korean.has_hangul(text) else split_plain_sentences(text)


class PosTagger:
    """Tags by an object with a `pos(text)` method that returns (form, tag) pairs, such as KoNLPy's Okt, Komoran, Kkma, Hannanum, Mecab."""

    def __init__(self, analyser: PosAnalyser, name: str | None = None) -> None:
        self.analyser = analyser
        self._name = (name or type(analyser).__name__).removeprefix(MARK)

    @property
    def name(self) -> str:
        """The analyser's name, by default that of its class."""
        return MARK + self._name

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text."""
        for text in texts:
            cleaned = clean(text)
            yield _place(cleaned, self.analyser.pos(cleaned)) if korean.has_hangul(cleaned) else _tag_plainly(cleaned)

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends, by punctuation."""
        return split_plain_sentences(clean(text))


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
            yield _tag_plainly(cleaned)

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends, by punctuation."""
        return split_plain_sentences(clean(text))


class DictionaryTagger:
    """Tags by another tagger, and leaves out the stop words of a dictionary; Kiwi keeps its words whole.

    Spellings are for those who count words (`spell`); morphemes keep the places of the text as it is written.
    """

    def __init__(self, inner: Tagger, dictionary: Dictionary) -> None:
        self.inner = inner
        self.dictionary = dictionary
        self._stops = {word.casefold() for word in dictionary.stop_words}

    @property
    def name(self) -> str:
        """The tagger's name, and the entries of the dictionary."""
        return self.inner.name + DICTIONARY_MARK + self.dictionary.text

    def spell(self, text: str) -> str:
        """Return a text with every variant in its usual spelling."""
        return self.dictionary.spell(clean(text))

    def tag(self, texts: Iterable[str], /) -> Iterator[list[Morpheme]]:
        """Yield the morphemes of each text."""
        for found in self.inner.tag(texts):
            yield [each._replace(tag=_STOPPED) if each.form.casefold() in self._stops else each for each in found]

    def sentences(self, text: str, /) -> list[tuple[int, int]]:
        """Return where each sentence starts and ends."""
        return self.inner.sentences(text)


def _tag_plainly(cleaned: str) -> list[Morpheme]:
    return [Morpheme(*found) for found in split_plain_morphemes(cleaned)]


def _check_answers(texts: Iterable[str], words: tuple[str, ...]) -> Iterator[tuple[str, list[tuple[int, Any]] | None]]:
    """Yield each cleaned text with Kiwi's tokens, or with None if it holds no Hangul; an empty text costs Kiwi nothing."""
    kept: deque[str] = deque()

    def for_kiwi() -> Iterator[str]:
        for text in texts:
            cleaned = clean(text)
            kept.append(cleaned)
            yield cleaned if korean.has_hangul(cleaned) else ""

    for answers in tag_each_with_kiwi(for_kiwi(), user_words=words):
        cleaned = kept.popleft()
        yield cleaned, answers if korean.has_hangul(cleaned) else None


def _place(text: str, pairs: Iterable[tuple[str, str]]) -> list[Morpheme]:
    """Give pairs of form and tag their places; a form that does not stand in the text as such gets an empty place."""
    found: list[Morpheme] = []
    at = 0
    for form, tag in pairs:
        start = text.find(form, at, at + _FAR + len(form)) if form else -1
        skipped = text[at:start].split() if start >= 0 else []
        if start < 0 or len(skipped) > 1:  # more than the rest of one word lies between: not the next morpheme
            found.append(Morpheme(form, to_sejong_tag(tag), at, at))
            continue
        at = start + len(form)
        found.append(Morpheme(form, to_sejong_tag(tag), start, at))
    return found
