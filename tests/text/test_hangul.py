"""Letters of Hangul: syllables come apart and together again, slips change one letter; Hanja are read as dictionaries read them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.text.hangul import find_neighbour_keys, join_syllable, list_slips, split_syllable, take_initials
from munjang.text.hanja import find_hanja, read_hanja

syllables = st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)


@given(syllables)
def test_a_syllable_comes_apart_as_unicode_says_and_together_again(syllable: str) -> None:
    letters = split_syllable(syllable)
    assert join_syllable(*letters) == syllable
    assert len(unicodedata.normalize("NFD", syllable)) == len("".join(letters).strip())


@given(syllables)
def test_a_slip_changes_one_letter_and_may_be_undone_by_another(syllable: str) -> None:
    for slip in list_slips(syllable):
        assert sum(one != two for one, two in zip(split_syllable(slip), split_syllable(syllable), strict=True)) == 1
        assert syllable in list_slips(slip)


def test_neighbours_lie_beside_each_other_and_are_mutual() -> None:
    keys = find_neighbour_keys()
    assert set(keys["ㅁ"]) == set("ㅂㅈㄴㅋㅌ")
    assert all(key in keys[other] for key, others in keys.items() for other in others)


def test_initials_are_of_hangul_alone() -> None:
    assert (take_initials("에어 팟"), take_initials("팟2")) == ("ㅇㅇㅍ", "")


@pytest.mark.parametrize(
    ("hanja", "reading"),
    [
        ("大韓民國", "대한민국"),
        ("歷史", "역사"),
        ("女子", "여자"),
        ("男女", "남녀"),
        ("法律", "법률"),
        ("比率", "비율"),
        ("戰列", "전열"),
        ("勞動", "노동"),
        ("音樂", "음악"),
        ("娛樂", "오락"),
        ("自動車", "자동차"),
        ("金海", "김해"),
        ("北京", "북경"),
        ("來日", "내일"),
    ],
)
def test_hanja_are_read_as_in_a_dictionary(hanja: str, reading: str) -> None:
    assert reading in read_hanja(hanja)


def test_what_is_no_korean_hanja_has_no_reading() -> None:
    assert read_hanja("这个") == []
    assert read_hanja("") == []
    assert find_hanja("가 金 나 銀行") == ["銀行"]
