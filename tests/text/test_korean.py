"""Words of a text: morphemes by Kiwi where it is installed, pairs of characters where it is not."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import MissingExtra, UsageError
from munjang.text import korean
from munjang.text.korean import KoreanNote, choose_analyser, morphemes, split_by


@pytest.fixture
def _no_kiwi(monkeypatch):
    monkeypatch.setattr(korean, "find_spec", lambda name: None)
    korean._warn_once.cache_clear()
    yield
    korean._warn_once.cache_clear()


def test_other_scripts_are_plain_words_in_lower_case():
    assert morphemes("Straße, C3PO & naïve_x", analyser="bigrams") == ["strasse", "c3po", "naïve", "x"]
    assert morphemes("東京都", analyser="bigrams") == ["東京", "京都"]
    assert morphemes("", analyser="bigrams") == morphemes(" …!? ", analyser="bigrams") == []


@pytest.mark.usefixtures("_no_kiwi")
def test_without_kiwi_korean_becomes_pairs_with_one_note():
    with pytest.warns(KoreanNote, match="munjang\\[korean\\]"):
        assert morphemes("비가 온다") == ["비가", "온다"]
    assert morphemes("서울특별시 눈") == ["서울", "울특", "특별", "별시", "눈"]
    assert choose_analyser() == "bigrams"
    with pytest.raises(MissingExtra):
        split_by("kiwi")


@pytest.mark.usefixtures("_no_kiwi")
def test_without_kiwi_other_languages_need_no_note():
    assert morphemes("rain") == ["rain"]


def test_an_unknown_analyser_is_refused():
    with pytest.raises(UsageError, match="kiwi, bigrams"):
        split_by("mecab")


def test_nfd_and_nfc_have_the_same_words():
    assert morphemes("\u1112\u1161\u11ab\u1100\u1173\u11af", analyser="bigrams") == morphemes("한글", analyser="bigrams")


def test_kiwi_drops_particles_and_endings_and_keeps_stems():
    pytest.importorskip("kiwipiepy")
    assert morphemes("눈이 오는 서울에서 달렸다") == ["눈", "오", "서울", "달리"]
    assert set(morphemes("달리는 사람")) & set(morphemes("사람은 달렸다")) == {"달리", "사람"}
    assert "gpt" in morphemes("GPT를 쓴다")


def test_kiwi_may_be_asked_by_several_threads():
    pytest.importorskip("kiwipiepy")
    expected, found = morphemes("겨울의 서울은 춥다"), []
    threads = [threading.Thread(target=lambda: found.extend(morphemes("겨울의 서울은 춥다") for _ in range(20))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 60


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_words_hold_no_white_space_and_are_never_empty(text):
    for word in morphemes(text, analyser="bigrams"):
        assert word
        assert not any(ch.isspace() for ch in word)
