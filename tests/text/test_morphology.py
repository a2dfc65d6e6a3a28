"""Morphemes, lemmas, places and sentences: what Kiwi itself says, nothing added and nothing lost."""

from __future__ import annotations

import csv
import gzip
import unicodedata
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import munjang
from munjang.errors import MissingExtra, TextError, UsageError
from munjang.limits import LIMITS
from munjang.text import korean, morphology
from munjang.text.morphology import Morph, Morphology, analyse

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
TEXTS = [
    "서울에 눈이 내렸다. 우산을 챙겼어야 했는데!",
    '그는 "가자."라고 말하고 나갔다',
    "예뻤어요 🙂 NLP를 배운다\n다음 줄입니다",
    "It rains in Seoul. 비가 와요~ 진짜루?",
    "제3회 대회는 2024년 11월에 https://example.org 에서 열린다",
    "이걸 分離해 줘",
    "no Hangul here",
    "   ",
    "",
]


def kiwi(keep_names: bool = False) -> Any:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    return korean._load_kiwi((), keep_names)


def own_words(own: Any, text: str) -> list[tuple[str, str, str, int, int]]:
    return [(token.form, token.tag, token.lemma, token.start, token.start + token.len) for token in own.tokenize(text)]


def words(answer: Morphology) -> list[tuple[str, str, str, int, int]]:
    return [(morph.form, morph.tag, morph.lemma, morph.start, morph.end) for morph in answer.morphs]


def test_the_answer_is_kiwis_own():
    own = kiwi()
    for text, answer in zip(TEXTS, analyse(TEXTS, keep_names=False), strict=True):
        assert words(answer) == own_words(own, text)
        assert [(each.text, each.start, each.end) for each in answer.sentences] == [
            (each.text, each.start, each.end) for each in own.split_into_sents(text)
        ]
        assert all(text[each.start : each.end] == each.text for each in answer.sentences)


@pytest.mark.slow
def test_a_thousand_sentences_are_split_as_by_kiwi_with_its_defaults():
    kiwipiepy = pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    path = SHARED / "korsts" / "sts-dev.tsv.gz"
    if not path.is_file():
        pytest.skip("the shared data folder is not here")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        texts = [unicodedata.normalize("NFC", row["sentence1"]) for row in islice(rows, 1_000)]
    own = kiwipiepy.Kiwi()
    assert len(texts) == 1_000
    for text, answer in zip(texts, analyse(texts), strict=True):
        assert words(answer) == own_words(own, text)
        assert [each.text for each in answer.sentences] == [each.text for each in own.split_into_sents(text)]


def test_verbs_have_the_form_of_a_dictionary():
    kiwi()
    [answer] = analyse(["그가 달렸다"], keep_names=False)
    assert Morph("달리", "VV", "달리다", 3, 5) in answer.morphs
    assert answer.nouns == ["그"]


def test_nouns_alone_are_those_of_the_whole_answer():
    kiwi()
    whole, nouns = analyse(TEXTS, keep_names=False), analyse(TEXTS, nouns=True, keep_names=False)
    assert [each.nouns for each in nouns] == [each.nouns for each in whole]
    assert all(morph.is_noun for each in nouns for morph in each.morphs)
    assert [len(each.sentences) for each in nouns] == [len(each.sentences) for each in whole]


def test_composed_and_decomposed_hangul_are_split_alike():
    kiwi()
    assert analyse([unicodedata.normalize("NFD", TEXTS[0])], keep_names=False) == analyse(TEXTS[:1], keep_names=False)


def test_a_text_longer_than_kiwi_gets_at_once_keeps_its_places():
    kiwi()
    text = "겨울 날씨가 춥다. " * 2_500
    [answer] = analyse([text], keep_names=False)
    found = [morph for morph in answer.morphs if morph.form == "날씨"]
    assert len(found) == len(answer.sentences) == 2_500
    assert all(text[morph.start : morph.end] == "날씨" for morph in found)


def test_a_user_word_stays_whole():
    kiwi()
    assert analyse(["국민행복추진단이 모였다"], user_words=["국민행복추진단"], keep_names=False)[0].nouns == ["국민행복추진단"]


def test_what_is_no_list_of_texts_is_refused():
    kiwi()
    with pytest.raises(UsageError, match="one text"):
        analyse("비가 온다")
    with pytest.raises(TextError, match="the limit is"):
        analyse(["a" * (LIMITS.max_text_bytes + 1)], keep_names=False)
    assert analyse([]) == []


def test_without_kiwi_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(morphology, "kiwi_is_installed", lambda: False)
    with pytest.raises(MissingExtra, match=r"needs the extra 'korean'.*\n.*munjang\[korean\]"):
        analyse(["비가 온다"])


def test_the_verb_is_public_under_both_names():
    assert munjang.analyse is munjang.text.analyse is analyse
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        munjang.text.nothing  # noqa: B018
