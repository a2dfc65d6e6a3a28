"""Hanja → how they are read in Hangul: 大韓民國 → 대한민국, 歷史 → 역사, 規律 → 규율.

KS X 1001 lists its 4,888 Hanja in the order of their readings, and Python knows that list as euc_kr. So a table needs only the readings
and how many characters each has; it was made with Unihan's kHangul (Unicode 15), which it agrees with in every place. The list holds a
character that is read in several ways once for each.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import islice, product

MOST_READINGS = 4
"""Of one word; one with many ambiguous characters has more, and the first ones count."""

_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_RUNS = """
 가29 각11 간24 갈10 감20 갑6 강24 개20 객2 갱4 갹1 거17 건12 걸4 검7 겁3 게3 격7 견11 결6 겸6 경45 계24 고39 곡7 곤10
골3 공16 곶1 과12 곽4 관17 괄4 광13 괘3 괴9 굉4 교25 구54 국6 군6 굴4 궁6 권10 궐5 궤6 귀6 규15 균7 귤1 극7 근15 글1
금14 급7 긍4 기64 긴1 길4 김1 끽1 나15 낙8 난9 날2 남9 납5 낭7 내6 냉1 녀1 년3 념4 녕2 노18 녹6 논1 농7 뇌6 뇨1 누8 눈1
눌1 뉴2 늑2 늠1 능6 니2 닉2 다2 단20 달5 담17 답5 당11 대16 댁1 덕2 도40 독10 돈10 돌2 동17 두11 둔6 득1 등9 라9 락9 란9
랄2 람10 랍3 랑8 래4 랭1 략2 량13 려18 력7 련12 렬6 렴5 렵1 령18 례5 로18 록7 론1 롱7 뢰8 료12 룡1 루13 류14 륙3 륜6 률4
륭1 륵2 름1 릉6 리26 린9 림5 립4 마8 막6 만19 말7 망12 매14 맥5 맹6 멱2 면11 멸2 명15 몌1 모24 목7 몰2 몽3 묘12 무22 묵2
문12 물3 미19 민13 밀3 박19 반25 발11 방28 배20 백8 번10 벌4 범9 법2 벽11 변7 별4 병17 보16 복17 본1 볼1 봉16 부43 북1
분19 불5 붕6 비43 빈14 빙4 사60 삭4 산12 살5 삼8 삽4 상31 새3 색5 생5 서30 석15 선32 설13 섬8 섭4 성18 세9 소37 속9 손6
솔1 송8 쇄5 쇠2 수61 숙12 순27 술4 숭3 슬3 습5 승10 시28 식15 신24 실4 심10 십3 쌍1 씨1 아18 악14 안10 알4 암8 압4 앙7
애11 액7 앵4 야11 약9 양31 어10 억5 언6 얼2 엄6 업2 엔1 여24 역13 연43 열10 염15 엽4 영40 예24 오30 옥5 온6 올1 옹9 와8
완18 왈1 왕5 왜4 외5 요38 욕6 용24 우32 욱9 운13 울3 웅2 원27 월3 위25 유56 육7 윤13 율5 융5 은7 을1 음6 읍3 응4 의19
이38 익8 인24 일9 임11 입5 잉4 자26 작13 잔5 잠6 잡1 장37 재17 쟁4 저28 적25 전41 절8 점9 접3 정55 제23 조46 족4 존2
졸3 종17 좌5 죄1 주40 죽2 준19 줄1 중4 즉1 즐1 즙3 증11 지34 직5 진35 질15 짐2 집7 징3 차15 착7 찬15 찰5 참10 창22 채12
책4 처4 척15 천19 철10 첨10 첩10 청8 체10 초27 촉6 촌4 총10 촬1 최3 추23 축12 춘3 출3 충6 췌4 취14 측5 층1 치24 칙3 친1
칠3 침9 칩1 칭2 쾌1 타14 탁16 탄10 탈2 탐4 탑3 탕5 태14 택3 탱1 터1 토4 통7 퇴6 투6 특2 틈1 파16 판9 팔3 패11 팽4 퍅1
편10 폄1 평5 폐10 포28 폭6 표14 품2 풍5 피7 필10 핍2 하14 학5 한14 할2 함12 합7 항17 해18 핵2 행5 향9 허4 헌4 헐1 험2
혁4 현21 혈4 혐1 협12 형20 혜9 호41 혹3 혼6 홀3 홍10 화14 확6 환17 활5 황24 회20 획2 횡3 효13 후13 훈10 훙1 훤4 훼3 휘8
휴5 휼3 흉5 흑1 흔4 흘4 흠3 흡4 흥1 희20 힐1
"""
_FIRST_BYTE, _ROW = 0xCA, 94
_FIRST, _PER_INITIAL, _PER_VOWEL = 0xAC00, 588, 28
_N, _R, _SILENT = 2, 5, 11  # initial consonants ㄴ, ㄹ and ㅇ
_IOTISED = (2, 3, 6, 7, 12, 17, 20)  # ㅑ ㅒ ㅕ ㅖ ㅛ ㅠ ㅣ, before which a first ㄴ or ㄹ is not spoken


def read_hanja(word: str) -> list[str]:
    """Return the readings of a word of Hanja; none if a character is not in the list.

    >>> read_hanja("大韓民國"), read_hanja("歷史"), read_hanja("規律")
    (['대한민국'], ['역사'], ['규율'])
    >>> read_hanja("比率")  # 率 is read 솔 too, as in 統率
    ['비솔', '비율']
    """
    table = _load_table()
    characters = [table.get(each) for each in unicodedata.normalize("NFC", word)]
    if not characters or None in characters:
        return []
    found = product(*(each for each in characters if each))
    return list(dict.fromkeys(_speak(each) for each in islice(found, MOST_READINGS)))


def find_hanja(text: str) -> list[str]:
    """Return the words of two Hanja or more, as they stand in a text.

    >>> find_hanja("國民(국민)과 大韓民國")
    ['國民', '大韓民國']
    """
    return [word for word in _RUN.findall(text) if len(word) >= 2]


@lru_cache(maxsize=1)
def _load_table() -> dict[str, tuple[str, ...]]:
    """Return the readings of each character, those that begin with ㄹ or ㄴ before what becomes of them at a word's beginning."""
    found: dict[str, list[str]] = {}
    place = 0
    for run in _RUNS.split():
        for _ in range(int(run[1:])):
            code = bytes((_FIRST_BYTE + place // _ROW, 0xA1 + place % _ROW))
            written = code.decode("euc_kr")
            character = unicodedata.normalize("NFC", written)
            readings = found.setdefault(character, [])
            readings.insert(0 if written == character else len(readings), run[0])  # other readings have codes of their own
            place += 1
    return {character: _drop_softened(readings) for character, readings in found.items()}


def _drop_softened(readings: list[str]) -> tuple[str, ...]:
    softened = {_soften(each) for each in readings if _soften(each) != each}
    return tuple(each for each in readings if each not in softened)


def _speak(readings: tuple[str, ...]) -> str:
    """Join readings as they are spoken: ㄹ and ㄴ soften at the beginning, 률 and 렬 behind a vowel or ㄴ."""
    spoken = [_soften(readings[0])]
    for each in readings[1:]:
        final = (ord(spoken[-1]) - _FIRST) % _PER_VOWEL
        spoken.append({"률": "율", "렬": "열"}.get(each, each) if final in (0, 4) else each)
    return "".join(spoken)


def _soften(syllable: str) -> str:
    """Return a syllable as it stands at a word's beginning.

    >>> _soften("력"), _soften("로"), _soften("녀"), _soften("남")
    ('역', '노', '여', '남')
    """
    initial, rest = divmod(ord(syllable) - _FIRST, _PER_INITIAL)
    if initial not in (_N, _R):
        return syllable
    softened = _SILENT if rest // _PER_VOWEL in _IOTISED else _N
    return chr(_FIRST + softened * _PER_INITIAL + rest)
