"""Keywords: verbatim, diverse, the same for NFC and NFD, each candidate encoded once."""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.analyze.keywords import choose, choose_by_max_sum, choose_by_mmr, extract_keywords, find_candidates
from munjang.errors import UsageError
from munjang.text.phrases import end_in_nouns
from munjang.text.tagging import choose_tagger
from munjang.text.unicode import clean


class Letters:
    """An encoder whose vectors count characters; remembers what it was given."""

    dimension = 64
    fingerprint = "letters"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode(self, texts: Iterable[str], /) -> np.ndarray:
        given = list(texts)
        self.calls.append(given)
        rows = np.zeros((len(given), self.dimension), np.float32)
        for row, text in zip(rows, given, strict=True):
            for ch in unicodedata.normalize("NFC", text.casefold()):
                row[ord(ch) % self.dimension] += 1
        return rows


TEXTS = ["Heavy rain fell on Seoul. The rain stopped trains.", "Trains in Seoul stopped.", "", "the of", "snow"]


@pytest.fixture
def plain():
    return choose_tagger("plain")


def test_every_different_candidate_is_encoded_once_in_one_call(plain):
    encoder = Letters()
    found = extract_keywords([*TEXTS, TEXTS[0]], encoder, by=plain)
    assert len(encoder.calls) == 1
    assert len(encoder.calls[0]) == len(set(encoder.calls[0]))
    assert found[0] == found[5]
    assert found[2] == found[3] == ()
    assert [word.text for word in found[4]] == ["snow"]
    assert found[4][0].score == pytest.approx(1)


def test_places_show_the_keyword_in_the_text(plain):
    for text, words in zip(TEXTS, extract_keywords(TEXTS, Letters(), by=plain), strict=True):
        for word in words:
            assert all(text[start:end].casefold() == word.text.casefold() for start, end in word.places)
            assert word.text in text


def test_the_answer_for_a_text_does_not_depend_on_the_others(plain):
    together = extract_keywords(TEXTS, Letters(), by=plain)
    assert together == [extract_keywords([text], Letters(), by=plain)[0] for text in TEXTS]


def test_nfc_and_nfd_give_bit_equal_keywords():
    pytest.importorskip("kiwipiepy")
    texts = ["서울에 겨울 폭설이 내려 지하철이 멈췄다", "축구 대표팀이 이겼다"]
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    found = extract_keywords(texts, Letters())
    assert extract_keywords(decomposed, Letters()) == found
    assert found[0]


def test_seed_words_draw_the_choice(plain):
    text = ["banana market and zebra park"]
    nearest = {"top": 1, "max_words": 1, "choice": "nearest"}
    drawn = {**nearest, "seed_words": ("zebra zebra zebra",)}
    scores = {word.text: word.score for word in extract_keywords(text, Letters(), top=9, choice="nearest", by=plain)[0]}
    after = {
        word.text: word.score for word in extract_keywords(text, Letters(), top=9, choice="nearest", seed_words=("zebra",), by=plain)[0]
    }
    assert after["zebra"] > scores["zebra"]
    assert extract_keywords(text, Letters(), **nearest, by=plain) != extract_keywords(text, Letters(), **drawn, by=plain)


def test_own_candidates_are_the_only_ones_wherever_they_stand_in_a_text():
    texts = ["기후변화와  RAIN, rainbow", "no more  rain\nfall here"]
    found = extract_keywords(texts, Letters(), candidates=["기후변화", "rain", "rain fall", "snow", ""])
    assert [{word.text: word.places for word in each} for each in found] == [
        {"기후변화": ((0, 4),), "rain": ((7, 11),)},
        {"rain": ((9, 13),), "rain fall": ((9, 18),)},
    ]


def test_own_candidates_may_differ_from_text_to_text():
    found = extract_keywords(["rain and snow", "rain and snow"], Letters(), candidates=[["rain"], ["snow", "wind"]])
    assert [[word.text for word in each] for each in found] == [["rain"], ["snow"]]


@pytest.mark.parametrize("candidates", ["rain", 3, [["rain"]], [["rain"], "snow"], [["rain"], [3]]])
def test_candidates_that_fit_no_text_are_refused(candidates):
    with pytest.raises(UsageError, match="candidates|texts"):
        extract_keywords(["rain", "snow"], Letters(), candidates=candidates)


def test_rare_phrases_can_be_left_out(plain):
    found = find_candidates(TEXTS, min_frequency=2, by=plain)
    assert [[one.text for one in each] for each in found] == [
        ["rain", "Seoul", "stopped", "trains"],
        ["Trains", "Seoul", "stopped"],
        [],
        [],
        [],
    ]


def test_vectors_that_are_known_are_not_computed_again(plain):
    encoder = Letters()
    known = encoder.encode([clean(text) for text in TEXTS])
    again = Letters()
    assert extract_keywords(TEXTS, again, vectors=known, by=plain) == extract_keywords(TEXTS, Letters(), by=plain)
    assert TEXTS[0] not in again.calls[0]
    with pytest.raises(UsageError, match="1 for 5"):
        extract_keywords(TEXTS, again, vectors=known[:1], by=plain)


def test_no_texts_have_no_keywords(plain):
    assert extract_keywords([], Letters(), by=plain) == []


@pytest.mark.parametrize("options", [{"top": 0}, {"min_words": 2, "max_words": 1}, {"min_frequency": 0}, {"diversity": 2}], ids=str)
def test_what_cannot_be_is_refused(options, plain):
    with pytest.raises(UsageError, match="expected"):
        extract_keywords(TEXTS, Letters(), **options, by=plain)


@given(st.integers(1, 12), st.integers(0, 1000), st.sampled_from(["mmr", "max-sum", "nearest"]))
def test_fewer_keywords_are_a_prefix_of_more(count, seed, how):
    random = np.random.default_rng(seed)
    unit = random.standard_normal((count, 4)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    relevance = unit @ unit[0]
    longest = choose(relevance, unit, k=5, how=how, diversity=0.5, pool=20)
    assert len(set(longest)) == len(longest) == min(5, count)
    assert longest[0] == int(np.argmax(relevance))
    for k in range(1, 5):
        assert choose(relevance, unit, k=k, how=how, diversity=0.5, pool=20) == longest[:k]


def test_mmr_is_that_of_keybert():
    peer = pytest.importorskip("keybert._mmr", reason="the authority KeyBERT is not installed")
    random = np.random.default_rng(3)
    unit = random.standard_normal((30, 8)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    text = unit[:5].mean(axis=0)
    text /= np.linalg.norm(text)
    theirs = {word for word, _ in peer.mmr(text[None], unit, [str(n) for n in range(30)], top_n=6, diversity=0.4)}
    assert {str(place) for place in choose_by_mmr(unit @ text, unit, k=6, diversity=0.4)} == theirs


def test_max_sum_looks_at_the_closest_only():
    unit = np.eye(4, dtype=np.float32)
    assert set(choose_by_max_sum(np.array([0.1, 0.9, 0.8, 0.2], np.float32), unit, k=2, pool=2)) == {1, 2}


def test_korean_candidates_of_real_bills_are_verbatim_and_clean():
    pytest.importorskip("kiwipiepy")
    path = Path(__file__).parents[3] / "shared/data/korean-assembly-bills/bills_14x500.tsv.gz"
    if not path.is_file():
        pytest.skip("the bills are not there")
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        texts = [line.rstrip("\n").split("\t")[3] for line in handle][1::200]
    found = find_candidates(texts)
    tags = [{m.end: m.tag for m in each} for each in choose_tagger().tag(texts)]
    phrases = [one.text for each in found for one in each]
    assert len(phrases) > 500
    for text, ends, each in zip(texts, tags, found, strict=True):
        for one in each:
            assert one.text in clean(text)
            assert not any(ends[end].startswith(("J", "E")) for _, end in one.places)
    assert all(end_in_nouns(phrases))


@pytest.mark.parametrize(
    ("how", "pool", "words"),
    [
        ("best", 3, "the choice 'best' is unknown, expected mmr, max-sum or nearest"),
        ("max-sum", 0, "pool is 0, expected at least 1 candidate"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(how, pool, words):
    with pytest.raises(UsageError, match=words):
        choose(np.ones(2, dtype=np.float32), np.eye(2, dtype=np.float32), k=1, how=how, diversity=0.5, pool=pool)
