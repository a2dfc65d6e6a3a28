"""A user's dictionary: read, refused with its line, equal whatever its order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.text.dictionary import TAGS, Dictionary, parse_dictionary, read_dictionary

entry = st.text("가나다라abc ", min_size=1, max_size=8).map(lambda text: " ".join(text.split())).filter(bool)
line = st.one_of(
    st.tuples(st.just("word"), entry, st.sampled_from(TAGS)),
    st.tuples(st.just("synonym"), entry, entry),
    st.tuples(st.just("means"), entry, entry),
    st.tuples(st.just("variant"), entry, entry),
    st.tuples(st.just("stop"), entry),
)


@given(st.lists(line, max_size=10), st.randoms())
def test_the_same_entries_give_the_same_text_which_gives_the_same_entries(lines: list[tuple[str, ...]], chance) -> None:
    lines = [each for each in lines if each[0] != "synonym" or each[1] != each[2]]
    made = parse_dictionary("\n".join("\t".join(each) for each in lines))
    chance.shuffle(lines)
    assert parse_dictionary("# a comment\n\n" + "\r\n".join("\t".join(each) for each in lines)).text == made.text
    assert parse_dictionary(made.text) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("words\t가", "line 1.*'words'.*word, synonym"),
        ("stop\t가\nword\t가\tXYZ", "line 2.*'XYZ'.*NNG"),
        ("synonym\t가", "line 1.*1 fields.*2 to 50"),
        ("word\t" + "가" * 101, "101 characters"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "words.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"words.tsv {said}" if said.startswith("line") else said):
        read_dictionary(tmp_path / "words.tsv")


def test_a_file_that_is_not_utf8_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_bytes("word\t가".encode("cp949"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_dictionary(tmp_path / "words.tsv")
    with pytest.raises(InputError, match="cannot be read"):
        read_dictionary(tmp_path / "none.tsv")


def test_variants_are_spelled_as_usual_the_longest_first_and_latin_ones_at_word_boundaries() -> None:
    dictionary = Dictionary(variants=(("쥬스", "주스"), ("포도쥬스", "포도즙"), ("tv", "텔레비전")))
    assert dictionary.spell("포도쥬스 사과쥬스 TV tvN") == "포도즙 사과주스 텔레비전 tvN"


def test_a_variant_within_its_usual_spelling_is_none_and_latin_ones_may_touch_hangul() -> None:
    own = parse_dictionary("variant\t두레밥\t두레밥상\nvariant\tdalbodre\t달보드레\n")
    assert own.spell("두레밥상 두레밥") == "두레밥상 두레밥상"
    assert own.spell("dalbodre실내화 xdalbodre Dalbodre") == "달보드레실내화 xdalbodre 달보드레"


def test_words_of_synonyms_are_nouns_of_their_own_unless_they_are_words_already() -> None:
    own = parse_dictionary("word\t후디\tNNP\nsynonym\t후드티\t후디\thood\nmeans\t실내화\t무선 충전기\n")
    assert own.terms == ("실내화", "후드티")
    assert own.user_words == ("실내화\tNNG", "후드티\tNNG", "후디\tNNP")
