"""Words that say nothing about what a text is about; our own short lists, for candidates of keywords and topics.

English: articles, pronouns, prepositions, auxiliaries. Korean: nouns that only count, compare or point (경우, 이상, 관련). Particles and
endings are no words to begin with and stand in no list.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import cast

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
