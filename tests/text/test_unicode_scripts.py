"""Which characters a language is written in."""

from __future__ import annotations

import pytest

from munjang.errors import UsageError
from munjang.text.unicode import SCRIPTS, find_scripts, is_shared, is_written_with


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ko", "가힣ㄱㅎᄀ"),
        ("en", "azAZéñ"),
        ("ja", "あア漢"),
        ("zh", "漢字"),
        ("ru", "Яёж"),
        ("el", "αΩ"),
        ("ar", "سلام"),
        ("hi", "हिन्दी"),
    ],
)
def test_a_language_has_its_own_letters_and_no_other_language_has_them_all(code: str, text: str) -> None:
    assert is_written_with(text, SCRIPTS[code].letters)
    assert not is_written_with(text, SCRIPTS["th"].letters)


@pytest.mark.parametrize("character", list("0 9.,!?%€~…「』😀☃\u200d\ufe0f"))
def test_digits_signs_and_emoji_belong_to_all(character: str) -> None:
    assert is_shared(character)


@pytest.mark.parametrize("character", list("a가あжé٣"))
def test_letters_and_foreign_digits_belong_to_some(character: str) -> None:
    assert not is_shared(character)


def test_scripts_come_in_the_order_named() -> None:
    assert find_scripts(["en", "ko"]) == (SCRIPTS["en"], SCRIPTS["ko"])


def test_an_unknown_code_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="'tlh' is unknown; known are ko, en"):
        find_scripts(["tlh"])
