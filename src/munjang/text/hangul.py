"""Syllables of Hangul and their letters: what a syllable is made of, first consonants (초성), and keys that lie beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
"""The first is no consonant."""

_FIRST, _LAST = "가", "힣"
_KEYS = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")  # the two-set keyboard, row by row
_SHIFTED = dict(zip("ㅂㅈㄷㄱㅅㅐㅔ", "ㅃㅉㄸㄲㅆㅒㅖ", strict=True))


def is_syllable(character: str) -> bool:
    """Say whether a character is a whole syllable of Hangul."""
    return _FIRST <= character <= _LAST


def split_syllable(syllable: str) -> tuple[str, str, str]:
    """Return the letters of a syllable: initial consonant, vowel, final consonant or a space.

    >>> split_syllable("한"), split_syllable("가")
    (('ㅎ', 'ㅏ', 'ㄴ'), ('ㄱ', 'ㅏ', ' '))
    """
    initial, rest = divmod(ord(syllable) - ord(_FIRST), len(VOWELS) * len(FINALS))
    vowel, final = divmod(rest, len(FINALS))
    return INITIALS[initial], VOWELS[vowel], FINALS[final]


def join_syllable(initial: str, vowel: str, final: str = " ") -> str:
    """Return the syllable of three letters.

    >>> join_syllable("ㅎ", "ㅏ", "ㄴ")
    '한'
    """
    place = (INITIALS.index(initial) * len(VOWELS) + VOWELS.index(vowel)) * len(FINALS) + FINALS.index(final)
    return chr(ord(_FIRST) + place)


def take_initials(word: str) -> str:
    """Return the first consonants of a word of Hangul syllables, else an empty text.

    >>> take_initials("무선충전기"), take_initials("TV")
    ('ㅁㅅㅊㅈㄱ', '')
    """
    written = [character for character in word if not character.isspace()]
    return "".join(split_syllable(each)[0] for each in written) if all(map(is_syllable, written)) else ""


@cache
def find_neighbour_keys() -> dict[str, str]:
    """Return for each letter those of the same kind that a slip of the finger makes of it: keys beside, above and below, and Shift.

    >>> find_neighbour_keys()["ㅁ"]
    'ㅂㅈㄴㅋㅌ'
    """
    places = {key: (row, column) for row, keys in enumerate(_KEYS) for column, key in enumerate(keys)}
    found = {key: "".join(other for other in places if _are_neighbours(key, other, places)) for key in places}
    for plain, shifted in _SHIFTED.items():
        found[plain] += shifted
        found[shifted] = plain
    return found


def _are_neighbours(key: str, other: str, places: dict[str, tuple[int, int]]) -> bool:
    (row, column), (other_row, other_column) = places[key], places[other]
    is_same_kind = (key in VOWELS) == (other in VOWELS)
    return key != other and is_same_kind and abs(row - other_row) <= 1 and abs(column - other_column) <= 1


def list_slips(syllable: str) -> Iterator[str]:
    """Yield the syllables that one slip of the finger makes of this one.

    >>> "".join(list_slips("강"))
    '당상앙랑항깡경걍갱겅깅긍갖갇각간갈같갗갚'
    """
    keys = find_neighbour_keys()
    initial, vowel, final = split_syllable(syllable)
    yield from (join_syllable(other, vowel, final) for other in keys.get(initial, ""))
    yield from (join_syllable(initial, other, final) for other in keys.get(vowel, ""))
    yield from (join_syllable(initial, vowel, other) for other in keys.get(final, "") if other in FINALS)
