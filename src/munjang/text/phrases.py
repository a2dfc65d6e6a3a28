"""A text → its noun phrases and sentences, each with its exact place, and the nouns of its compounds.

A noun phrase is one or more words side by side on one line. A Korean word counts up to the particle or ending that hangs on it, so a phrase
stands verbatim in the text and never ends in a particle (josa) or an ending (eomi); a noun that is the stem of a verb (수립 in 수립하다) is
no phrase. A word of another language counts as it is written. Stop words end a phrase; they are our own short lists (English: articles,
pronouns, prepositions, auxiliaries; Korean: nouns that only count, compare or point).

Places count characters of `unicode.clean(text)`; for NFC text that is the text itself.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from munjang.text.tagging import Morpheme, Tagger, choose_tagger
from munjang.text.unicode import clean

_LATIN = re.compile(r"[a-z]+")
_LONGEST = 40
"""Letters of a word; what is longer is no word that anybody bends."""
_own = threading.local()


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """Return the stem of a word in lower case.

    >>> [stem(word) for word in ("raining", "rains", "libraries", "bert4", "달리")]
    ['rain', 'rain', 'librari', 'bert4', '달리']
    """
    if len(word) > _LONGEST or not _LATIN.fullmatch(word):
        return word
    if not hasattr(_own, "stemmer"):  # a stemmer is for one thread at a time
        from snowballstemmer.english_stemmer import EnglishStemmer

        _own.stemmer = EnglishStemmer()
    return cast("str", _own.stemmer.stemWord(word))


ENGLISH = frozenset(
    """
    a about above after again against all almost also although always am among an and another any anyone anything are aren around as at
    away back be became because become been before behind being below between both but by came can cannot could couldn did didn do does
    doesn doing don done down during each either else enough even ever every few first for from further get gets getting give given go goes
    going gone got had hadn has hasn have haven having he her here hers herself him himself his how however i if in indeed instead into is
    isn it its itself just keep know last least less let like ll made make makes making many may maybe me might mine more most much must
    my myself near need neither never next no nobody none nor not nothing now of off often on once one only onto or other others our ours
    ourselves out over own per perhaps please put quite rather re really said same saw say says see seem seemed seems several shall she
    should shouldn since so some someone something still such take than that the their theirs them themselves then there these they thing
    things this those though through thus to together too toward towards two under until up upon us use used uses using ve very via was
    wasn way we well went were weren what whatever when where whether which while who whole whom whose why will with within without won
    would wouldn yes yet you your yours yourself yourselves
    """.split()  # noqa: SIM905  # a list of this length reads better as lines
)

KOREAN = frozenset(
    """
    각각 각종 간 건 것 경우 과거 관련 그간 그것 그동안 금년 기타 나머지 남 내 내년 내용 누구 다수 다음 다음날 당시 대부분 대상 대신
    동안 동일 등 때 때문 마련 매우 명 모두 무엇 뭐 미만 바 반면 방안 번 부분 분 불구 사실 사이 상 상당수 수 시 실제 아래 안 앞 여기
    여러분 역시 오늘 올해 외 요즘 우리 위 의미 이것 이날 이내 이번 이상 이유 이전 이하 이후 일 일부 일환 자기 자신 자체 작년 저희 전
    전체 정도 제 존재 중 지금 차 초과 최근 측 타 통 편 포함 필요 하나 한편 해당 현재 현행 후
    """.split()  # noqa: SIM905
)

STOP_WORDS = ENGLISH | KOREAN

FUNCTION_WORDS = frozenset(
    """
    a am an and are as at be been being but by can could did do does for from had has have he her him his how i if in into is it
    its me my need no not of on or our please she should so such than that the their them then there these they this those to us
    want was we were what when where which who whom whose why will with would you your
    나 내 너 네 누구 누가 뭐 무슨 무엇 몇 어느 어디 어떤 어떻게 언제 얼마 얼마나 왜 우리 저 저희 제
    """.split()  # noqa: SIM905
)
"""Words by which nothing is looked for: grammar, pronouns, words that ask; few, since "first" in a question can be what matters."""

_LIGHT = (
    (("VV", "VA", "XR"), "있 없 하 되 주 알 모르 보 같 말 드리 계시 궁금 그러 그렇 이러 이렇 저러 저렇 어떻 어떠 어떡하"),
    (("NNB", "NNG"), "곳"),
    (("NNB",), "것 거 수 때 때문 등 데 바 줄 채 만큼 대로 뿐 듯 적 지 중 번 터 김 척 체 양 셈 나름 따름 겸 식 쪽 측"),
    (("MM", "MAG"), "이 그 저 어떤 무슨 어느 각 여러 모든 다른 좀 혹시 그냥 안 못 더 잘 다 또"),
    (("",), "있나 없나 나요 인가 가요 까요 니까 니다 습니 합니 입니 어요 아요 해요 세요 주세 려주 알려 있어 없어 있는 있을 하는 되는 되나"),
)
"""Korean words that carry grammar, not content, by their tags: light verbs, bound nouns, modifiers, and pairs of characters of endings."""

LIGHT_WORDS = frozenset((word, tag) for tags, words in _LIGHT for tag in tags for word in words.split())
"""Word and tag (Sejong's, without what follows a hyphen; "" where no analyser read the word)."""


def is_stop_word(word: str) -> bool:
    """Return whether a word says nothing by itself.

    >>> is_stop_word("The"), is_stop_word("경우"), is_stop_word("rain")
    (True, True, False)
    """
    return word.casefold() in STOP_WORDS


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
