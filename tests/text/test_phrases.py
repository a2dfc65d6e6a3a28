"""Noun phrases stand verbatim in the text and end in a noun."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.text.phrases import NounPart, end_in_nouns, find_noun_phrases, find_noun_runs, split_sentences
from munjang.text.tagging import Morpheme, choose_tagger
from munjang.text.unicode import clean

BILL = "국회의원의 수당 등에 관한 법률은 AI반도체산업을 육성하고 경제적 지원을 2025년까지 늘리려는 것임."


def phrases(text: str, **options) -> list[str]:
    return [span.text for span in next(find_noun_phrases([text], **options))]


def test_korean_phrases_lose_particles_and_leave_out_verbs():
    pytest.importorskip("kiwipiepy")
    assert phrases(BILL) == ["국회의원", "수당", "법률", "AI반도체산업", "경제적 지원", "지원"]


def runs(text: str) -> list[list[str]]:
    return [[part.text for part in run] for run in next(find_noun_runs([text]))]


def test_nouns_that_touch_are_one_run_and_particles_and_verbs_are_left_out():
    pytest.importorskip("kiwipiepy")
    assert runs("달리는 자동차를 보았다") == [["자동차"]]
    assert runs("부가가치세를 낸다") == [["부가", "가치세"]]
    assert runs("대통령 선거") == [["대통령"], ["선거"]]


def test_a_prefix_is_part_of_its_noun_and_a_suffix_is_no_noun():
    pytest.importorskip("kiwipiepy")
    assert runs("비정규직의 임금") == [["비정규직"], ["임금"]]
    assert next(find_noun_runs(["미성년자"])) == [[NounPart("미성년", stands_alone=True), NounPart("자", stands_alone=False)]]
    assert runs("근로자들") == [["근로자"]]
    assert runs("사회적기업") == [["사회"], ["기업"]]
    assert runs("법률상 지역별") == [["법률"], ["지역"]]


def test_a_particle_that_was_taken_for_a_noun_is_part_of_no_compound():
    pytest.importorskip("kiwipiepy")
    assert runs("도로가") == [["도로"]]


def test_a_foreign_word_is_a_run_of_its_own():
    pytest.importorskip("kiwipiepy")
    assert runs("AI산업을") == [["AI"], ["산업"]]


def test_a_phrase_has_as_many_words_as_asked_for():
    by = choose_tagger("plain")
    assert phrases("heavy winter rain", words=(2, 2), by=by) == ["heavy winter", "winter rain"]
    assert phrases("heavy winter rain", words=(3, 3), by=by) == ["heavy winter rain"]
    assert phrases("rain, snow", words=(2, 2), by=by) == []
    assert phrases("rain\nsnow", words=(2, 2), by=by) == []


def test_stop_words_end_a_phrase_and_hyphens_join():
    assert phrases("state-of-the-art model of the rain", by=choose_tagger("plain")) == [
        "state-of-the-art",
        "state-of-the-art model",
        "model",
        "rain",
    ]


def test_a_particle_that_the_text_hid_shows_when_a_phrase_is_read_alone():
    pytest.importorskip("kiwipiepy")
    assert end_in_nouns(["겨울 날씨", "겨울에", "", "rain"]) == [True, False, False, True]


def test_without_an_analyser_korean_particles_are_guessed():
    assert phrases("서울에서 지하철을 타는 사람들은 추위를 느낀다", by=choose_tagger("plain"))[:2] == ["서울", "지하철"]


@pytest.mark.parametrize("text", ["", " ", "…", "1,234", "은 는 이 가", "the of"])
def test_texts_without_nouns_have_no_phrases(text):
    assert phrases(text, by=choose_tagger("plain")) == []


WORDS = st.sampled_from(
    ["겨울", "날씨가", "서울에서", "달린다", "rain", "The", "2025년", "-", "AI", "경제적", "지원을", ".", "\n", "😀", "ㅋㅋ"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_phrases_are_verbatim_and_end_in_no_particle(text):
    pytest.importorskip("kiwipiepy")
    by = choose_tagger()
    ends = {m.end: m.tag for m in next(by.tag([text]))}
    for span in next(find_noun_phrases([text], by=by)):
        assert clean(text)[span.start : span.end] == span.text
        assert not ends[span.end].startswith(("J", "E"))


def test_sentences_keep_their_places():
    text = "  It rains.  I stay at home! 비가 온다。나는 집에 있다"
    found = split_sentences(text, by=choose_tagger("plain"))
    assert [span.text for span in found] == ["It rains.", "I stay at home!", "비가 온다。", "나는 집에 있다"]
    assert all(text[span.start : span.end] == span.text for span in found)
    assert split_sentences("", by=choose_tagger("plain")) == []


class Scripted:
    """A tagger that says what it is told."""

    name = "scripted"

    def __init__(self, *tags: tuple[str, str]) -> None:
        self.tags = tags

    def tag(self, texts):
        for text in texts:
            found, at = [], 0
            for form, tag in self.tags:
                start = text.index(form, at)
                at = start + len(form)
                found.append(Morpheme(form, tag, start, at))
            yield found

    def sentences(self, text):
        return [(0, len(text))]


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("-산업-", [("-", "SO"), ("산업", "NNG"), ("-", "SO")], ["산업"]),
        ("산업반", [("산업", "NNG"), ("반", "XPN")], ["산업"]),
        ("산업-반", [("산업", "NNG"), ("-", "SO"), ("반", "XPN")], ["산업"]),
        ("--", [("-", "SO"), ("-", "SO")], []),
    ],
    ids=["hyphens", "a prefix behind", "both", "nothing but hyphens"],
)
def test_hyphens_and_prefixes_at_an_end_are_no_part_of_a_word(text, tags, expected):
    by = choose_tagger(Scripted(*tags))
    assert by.name == "scripted"
    assert phrases(text, by=by) == expected
