import time
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import TextError, UsageError
from munjang.limits import LIMITS
from munjang.text.unicode import break_long_words, clean

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@given(ANY_TEXT)
def test_cleaned_text_can_always_be_written_as_utf8_and_has_no_nul(text):
    cleaned = clean(text)
    assert "\x00" not in cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned.encode().decode() == cleaned


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text):
    assert clean(clean(text)) == clean(text)


@given(st.text(max_size=60))
def test_nfc_and_nfd_become_the_same_text(text):
    assert clean(unicodedata.normalize("NFD", text)) == clean(text)


def test_a_lone_surrogate_and_a_nul_are_replaced():
    assert clean("가\ud83d나\x00다") == "가\ufffd나 다"


def test_a_text_over_the_limit_is_refused_with_its_size():
    limits = replace(LIMITS, max_text_bytes=10)
    assert clean("가나다", limits=limits) == "가나다"
    with pytest.raises(TextError, match="12 bytes, the limit is 10"):
        clean("가나다라", limits=limits)
    with pytest.raises(TextError, match="11 bytes"):
        clean("a" * 11, limits=limits)


def test_what_is_not_a_text_is_named_by_its_type():
    with pytest.raises(UsageError, match="NoneType"):
        clean(None)


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 250_000,
        "\u0316\u0301" * 250_000,
        "a" + "\u0316" * 250_000 + "\u0301" * 250_000,
        "a\u0301" * 250_000,
        "\u0344\u0316" * 250_000,
        "\u1100\u1161" * 250_000,
    ],
    ids=["mixed marks", "marks only", "sorted marks", "letters", "double marks", "jamo"],
)
def test_half_a_million_marks_cost_bounded_time(text):
    started = time.perf_counter()
    break_long_words(clean(text))
    assert time.perf_counter() - started < 3


def test_short_texts_are_cleaned_quickly():
    texts = ["비가 온다", "It is raining", "눈이 와요 ☃"] * 20_000
    started = time.perf_counter()
    for text in texts:
        break_long_words(clean(text))
    assert time.perf_counter() - started < 1.0  # measured: about 0.03


def test_a_megabyte_long_word_is_broken_quickly():
    started = time.perf_counter()
    broken = break_long_words("가" * 1_000_000)
    assert time.perf_counter() - started < 1
    assert max(map(len, broken.split())) == LIMITS.max_word_characters


@given(st.text("ab \n\u3000가", max_size=80), st.integers(1, 9))
def test_breaking_only_adds_spaces_and_leaves_no_long_word(text, longest):
    broken = break_long_words(text, limits=replace(LIMITS, max_word_characters=longest))
    assert all(len(word) <= longest for word in broken.split())
    assert "".join(broken.split()) == "".join(text.split())
    if all(len(word) <= longest for word in text.split()):
        assert broken == text
