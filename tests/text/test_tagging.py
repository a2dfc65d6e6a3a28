"""Morphemes with places: Kiwi, an analyser with pos(), and plain rules."""

from __future__ import annotations

import threading
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import MissingExtra, UsageError
from munjang.text import korean, tagging
from munjang.text.korean import KoreanNote, check_user_words, pieces
from munjang.text.tagging import KiwiTagger, Morpheme, PlainTagger, choose_tagger
from munjang.text.unicode import clean

RAIN = "서울에 비가 내려 지하철이 멈췄다. GPT 모델도 쉬었다."


class Okt:
    """Answers as KoNLPy's Okt does."""

    def pos(self, text: str) -> list[tuple[str, str]]:
        return [("서울", "Noun"), ("에", "Josa"), ("비", "Noun"), ("가", "Josa"), ("내리다", "Verb"), ("지하철", "Noun"), ("이", "Josa")]


@pytest.fixture
def _no_kiwi(monkeypatch):
    monkeypatch.setattr(tagging, "kiwi_is_installed", lambda: False)
    korean._warn_once.cache_clear()
    yield
    korean._warn_once.cache_clear()


def one(by, text: str) -> list[Morpheme]:
    return next(by.tag([text]))


def test_kiwi_knows_every_place():
    pytest.importorskip("kiwipiepy")
    found = one(choose_tagger("kiwi"), RAIN)
    nouns = [m.form for m in found if m.tag in ("NNG", "NNP", "SL")]
    assert nouns == ["서울", "비", "지하철", "GPT", "모델"]
    assert all(RAIN[m.start : m.end] == m.form for m in found if m.tag in ("NNG", "NNP", "SL"))


def test_long_texts_keep_their_places():
    pytest.importorskip("kiwipiepy")
    text = "겨울 날씨가 춥다. " * 2_500
    found = [m for m in one(choose_tagger("kiwi"), text) if m.form == "날씨"]
    assert len(found) == 2_500
    assert all(text[m.start : m.end] == "날씨" for m in found)


def test_user_words_stay_whole_and_do_not_change_the_shared_analyser():
    pytest.importorskip("kiwipiepy")
    text = "국민행복추진단이 모였다"
    before = one(choose_tagger("kiwi"), text)
    assert one(choose_tagger("kiwi", user_words=["국민행복추진단"]), text)[0].form == "국민행복추진단"
    assert one(choose_tagger("kiwi"), text) == before


def test_several_threads_may_tag_at_once():
    pytest.importorskip("kiwipiepy")
    by, found = choose_tagger("kiwi"), []
    expected = list(by.tag([RAIN] * 5))
    threads = [threading.Thread(target=lambda: found.append(list(by.tag([RAIN] * 5)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_an_object_with_pos_is_plugged_in_and_places_are_found():
    by = choose_tagger(Okt())
    assert by.name == "pos:Okt"
    found = one(by, RAIN)
    assert [m.tag for m in found] == ["NNG", "JX", "NNG", "JX", "VV", "NNG", "JX"]
    assert [RAIN[m.start : m.end] for m in found] == ["서울", "에", "비", "가", "", "지하철", "이"]


@pytest.mark.usefixtures("_no_kiwi")
def test_without_kiwi_plain_rules_say_so_once():
    by = choose_tagger()
    assert by.name == "plain"
    with pytest.warns(KoreanNote, match="munjang\\[korean\\]"):
        assert [m.form for m in one(by, "서울에서 지하철을")] == ["서울", "에서", "지하철", "을"]
    assert one(by, "비가")
    with pytest.raises(MissingExtra, match="munjang\\[korean\\]"):
        choose_tagger("kiwi")


def test_an_unknown_analyser_and_an_empty_user_word_are_refused():
    with pytest.raises(UsageError, match="kiwi, plain"):
        choose_tagger("hannanum")
    with pytest.raises(UsageError, match="1 to 100"):
        check_user_words(["  "])


def test_other_scripts_and_empty_texts_need_no_analyser():
    for by in (KiwiTagger(), PlainTagger(), choose_tagger(Okt())):
        assert list(by.tag(["", "two words", "42"])) == [
            [],
            [Morpheme("two", "SL", 0, 3), Morpheme("words", "SL", 4, 9)],
            [Morpheme("42", "SN", 0, 2)],
        ]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40))
def test_plain_places_lie_in_the_text_and_ascend(text):
    cleaned, at = clean(text), 0
    for morpheme in one(PlainTagger(), text):
        assert at <= morpheme.start < morpheme.end
        assert cleaned[morpheme.start : morpheme.end] == morpheme.form
        at = morpheme.end


@pytest.mark.parametrize("name", ["kiwi", "plain"])
def test_nfd_is_tagged_like_nfc(name):
    if name == "kiwi":
        pytest.importorskip("kiwipiepy")
    by = choose_tagger(name)
    assert one(by, unicodedata.normalize("NFD", RAIN)) == one(by, RAIN)
    assert by.sentences(unicodedata.normalize("NFD", RAIN)) == by.sentences(RAIN)
    assert len(by.sentences(RAIN)) == 2


@given(st.text(max_size=60), st.integers(1, 9))
def test_pieces_put_together_are_the_text(text, longest):
    assert "".join(piece for _, piece in pieces(text, longest=longest)) == text
    assert all(text[at : at + len(piece)] == piece and len(piece) <= longest for at, piece in pieces(text, longest=longest))


def test_without_kiwi_its_sentences_name_the_extra(monkeypatch):
    monkeypatch.setattr(korean, "kiwi_is_installed", lambda: False)
    with pytest.raises(MissingExtra, match=r"splitting Korean into morphemes needs the extra 'korean'.*\n.*install 'munjang\[korean\]'"):
        korean.split_sentences_with_kiwi("비가 온다. 눈이 온다.", user_words=("문장임베딩도서관",))
