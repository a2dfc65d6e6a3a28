"""The words of passages and questions: bent forms meet, grammar decides nothing, older libraries are asked as they were made."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from munjang.library.ranking import Hybrid
from munjang.library.words import passage_words, question_words, words_in_common
from munjang.text.phrases import FUNCTION_WORDS, stem

WORDS_ALONE = Hybrid(meaning=0)
WAYS = ("bigrams", "bigrams+stems")
PETS = [
    {"id": "dog", "text": "The dog barked at night and woke all neighbours."},
    {"id": "cat", "text": "Cats sleep for most of a day."},
    {"id": "rent", "text": "My landlord is raising my rent."},
    {"id": "비", "text": "어제는 비가 내렸다."},
]


def ids(hits) -> list[str]:
    return [hit.id for hit in hits]


@pytest.mark.parametrize(
    ("question", "expected"), [("barking dogs", "dog"), ("a sleeping cat", "cat"), ("rents are raised", "rent"), ("비가", "비")]
)
def test_a_word_is_found_in_whatever_form_it_is_asked_for(opened, encoder, question, expected):
    library = opened(encoder)
    library.add(PETS)
    assert ids(library.search(question, k=1, by="words")) == [expected]


def test_grammar_does_not_decide_among_few_documents(opened, encoder):
    """Two documents know "my", one "barking"; before there were function words, "my" was as rare as any word here."""
    library = opened(encoder)
    library.add(PETS)
    assert ids(library.search("why is my dog barking", k=2, by="words")) == ["dog"]


def test_an_explanation_names_words_as_they_stand_in_the_passage(opened, encoder):
    library = opened(encoder)
    library.add(PETS)
    [hit] = library.search("Do dogs bark?", k=1, by="words", explain=True)
    assert hit.explanation.words == ("dog", "barked")


def test_an_older_library_is_asked_as_it_was_made_and_gets_stems_when_reencoded(opened, encoder, make_encoder, tmp_path):
    opened(encoder).close()
    with sqlite3.connect(tmp_path / "a.db") as connection:  # as an older Munjang made it
        connection.execute("UPDATE settings SET analyser = 'bigrams'")
    connection.close()
    library = opened(encoder)
    library.add(PETS)
    assert ids(library.search("barked", k=1, by="words")) == ["dog"]
    assert library.search("barking", k=1, by="words") == []
    library.reencode(make_encoder("other", 16))
    assert library.info().analyser == "bigrams+stems"
    assert ids(library.search("barking", k=1, by="words")) == ["dog"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("WHO report on flu", ("who", "report", "flu")),
        ("who wrote the report", ("wrote", "report")),
        ("WHO WROTE THE REPORT", ("wrote", "report")),
        ("IT jobs in the US", ("it", "job", "us")),
        ("to be or not to be", ("to", "be", "or", "not", "to", "be")),
        ("", ()),
    ],
)
def test_function_words_go_unless_they_are_names_or_all_there_is(question, expected):
    assert question_words(question, "bigrams+stems") == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("학생 할인 있나요", ("학생", "할인")),
        ("비가 오는 것을 알 수 있을까요", ("비", "오")),
        ("어떻게 해야 되나요", ("어떻", "하", "되")),
        ("2020년에 있었던 일", ("2020", "년", "일")),
    ],
)
def test_light_verbs_and_bound_nouns_go_unless_they_are_all_there_is(question, expected):
    pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    assert question_words(question, "kiwi+stems") == expected


def test_without_kiwi_the_endings_of_a_question_do_not_count():
    assert question_words("학생 할인 있나요", "bigrams") == ("학생", "할인")
    assert question_words("있나요", "bigrams") == ("있나", "나요")


@given(st.text(max_size=80), st.sampled_from(WAYS))
def test_a_text_asked_for_by_itself_is_found_by_words_it_has(text, way):
    asked = question_words(text, way)
    present = passage_words(text, way)
    assert set(asked) <= set(present)
    assert bool(asked) == bool(present)
    assert set(words_in_common(text, asked, way)) >= set(words_in_common(text, asked[:1], way))
    assert bool(words_in_common(text, asked, way)) == bool(asked)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12))
def test_stems_are_snowballs(word):
    assert stem(word) == snowballstemmer.stemmer("english").stemWord(word)


def test_many_threads_get_the_same_stems():
    words = [f"{start}{end}" for start in ("rain", "walk", "librar", "organiz", "relat") for end in ("ing", "ed", "ies", "ation", "s")] * 40
    stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(stem, words)) == snowballstemmer.stemmer("english").stemWords(words)


def test_function_words_are_words_as_the_library_writes_them():
    assert all(word == word.casefold() and word.isalpha() for word in FUNCTION_WORDS)
