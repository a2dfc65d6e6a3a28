"""Topic words are whole words: nouns that a collection writes together only are one word, others stay apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.analyze.topics.edit import update_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.topic_words import MAX_CHARACTERS, bag_words, join_compounds, list_words
from munjang.text.phrases import NounPart
from munjang.text.tagging import choose_tagger

TAXES = [
    "가게 주인은 부가가치세를 석 달마다 낸다.",
    "부가가치세 신고를 잊으면 가산금이 붙는다.",
    "수출하는 물건에는 부가가치세가 붙지 않는다.",
    "식당 영수증에는 부가가치세와 봉사료가 따로 적힌다.",
]
ELECTIONS = [
    "대통령선거가 다가온다.",
    "대통령은 담화를 발표했다.",
    "동네 반장 선거가 열렸다.",
    "대통령과 총리가 만났다.",
    "학생회 선거에 세 사람이 나왔다.",
]
WORKERS = ["비정규직의 임금이 올랐다.", "비정규직은 계약이 짧다.", "정규직은 정년까지 일한다.", "정규직 채용이 늘었다."]


def noun(text: str) -> NounPart:
    return NounPart(text, stands_alone=True)


def words(texts: list[str], **options) -> Counter[str]:
    pytest.importorskip("kiwipiepy")
    return Counter(word for each in list_words(texts, choose_tagger("kiwi"), **options) for word in each)


def test_a_compound_that_the_analyser_splits_is_one_word() -> None:
    found = words(TAXES)
    assert found["부가가치세"] == 4
    assert not {"부가", "가치세"} & set(found)


def test_nouns_that_also_stand_apart_stay_two_words() -> None:
    found = words(ELECTIONS)
    assert (found["대통령"], found["선거"]) == (3, 3)
    assert "대통령선거" not in found


def test_a_prefix_never_leaves_its_noun() -> None:
    found = words(WORKERS)
    assert (found["비정규직"], found["정규직"]) == (2, 2)


def test_a_topic_shows_the_whole_compound() -> None:
    pytest.importorskip("kiwipiepy")
    texts = TAXES * 3 + ELECTIONS * 3
    vectors = np.repeat(np.eye(4, dtype=np.float32)[:2], [12, 15], axis=0) + np.linspace(0, 0.01, 27 * 4, dtype=np.float32).reshape(27, 4)
    model = fit_topics(texts, vectors=vectors, method="kmeans", topics=2, min_size=2, words=20)
    shown = {word for topic in model.topics for word, _ in topic.words}
    assert "부가가치세" in shown
    assert not {"부가", "가치세"} & shown
    grown = update_topics(model, ["부가가치세를 돌려받았다."], vectors=vectors[:1])
    assert "가치세" not in grown.bag.vocabulary
    assert grown.bag.totals()[grown.bag.vocabulary.index("부가가치세")] == model.bag.totals()[model.bag.vocabulary.index("부가가치세")] + 1


def test_three_parts_are_joined_and_a_suffix_goes_with_its_noun() -> None:
    whole = (noun("온실"), noun("가스"), noun("배출"), NounPart("권", stands_alone=False))
    assert join_compounds({whole: 5, (noun("배출"),): 1})[whole] == ["온실가스배출권"]
    split = join_compounds({whole: 5, whole[:2]: 9, (noun("배출"),): 9})
    assert split[whole] == ["온실가스", "배출"]
    assert split[noun("배출"),] == ["배출"]


def test_what_is_longer_than_a_word_is_not_joined() -> None:
    long = (noun("가" * MAX_CHARACTERS), noun("나나"))
    assert join_compounds({long: 5})[long] == ["가" * MAX_CHARACTERS, "나나"]


def test_words_of_an_older_vocabulary_are_cut_as_they_were() -> None:
    run = (noun("부가"), noun("가치세"))
    assert join_compounds({run: 9}, known={"부가", "가치세"})[run] == ["부가", "가치세"]
    assert join_compounds({run: 1, run[:1]: 9}, known={"부가가치세", "부가"})[run] == ["부가가치세"]


parts = st.sampled_from("가나다라마바").map(lambda ch: noun(ch * 2))
runs = st.dictionaries(st.lists(parts, min_size=1, max_size=5).map(tuple), st.integers(1, 9))


@given(runs)
def test_no_letter_is_lost_and_every_word_stands_in_its_run(counted: dict) -> None:
    for run, found in join_compounds(counted).items():
        assert "".join(found) == "".join(part.text for part in run)


@given(runs)
def test_how_often_all_stand_does_not_matter(counted: dict) -> None:
    assert join_compounds(counted) == join_compounds({run: 3 * count for run, count in counted.items()})


def test_english_is_as_it_was() -> None:
    assert bag_words(["heavy rain in Seoul", "rain again"], choose_tagger("plain")).vocabulary == ("heavy", "rain", "seoul")
