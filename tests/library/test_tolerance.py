"""Questions as they were meant: slips, names, spacing, Hanja and 초성 find what the library holds, and known words are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.library.test_dictionary import CountingEncoder, find

from munjang.library import questions
from munjang.library.library import Library
from munjang.library.tolerance import ask_as_meant

TEXTS = {
    "bird": "철새가 천안함 위로 날아간다",
    "manager": "가수의 매니저가 대표를 맡았다",
    "umbrella": "엄브렐러는 회사의 이름이다",
    "coat": "바람 막이 자켓을 입었다",
    "tent": "그늘막텐트를 쳤다",
    "hanja": "大韓民國의 수도",
    "hong": "홍길동이 집을 떠났다",
}
WAY = "kiwi+stems"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    with Library.open(tmp_path / "l.db", CountingEncoder()) as opened:
        opened.add([{"id": id, "text": text} for id, text in TEXTS.items()])
        yield opened


@pytest.mark.parametrize(
    ("query", "id"),
    [
        ("캐니저", "manager"),
        ("쵼안함", "bird"),
        ("엄브렐료", "umbrella"),
        ("엄브렐료사", "umbrella"),
        ("바람막이", "coat"),
        ("그늘막 텐트", "tent"),
        ("대한민국", "hanja"),
        ("ㅎㄱㄷ", "hong"),
    ],
)
def test_what_was_meant_is_found(library: Library, query: str, id: str) -> None:
    assert find(library, query)[:1] == [id]
    typed = [hit.id for hit in library.search(query, 4, by="words", as_typed=True) if hit.score > 0]
    assert query in ("대한민국", "그늘막 텐트") or id not in typed  # readings stand in the index


def test_readings_of_hanja_in_a_question_are_looked_for(library: Library) -> None:
    library.add([{"id": "hangul", "text": "대한민국의 역사"}])
    assert set(find(library, "大韓民國 歷史")) == {"hangul", "hanja"}


@pytest.mark.parametrize("query", ["가수의 매니저", "회사 이름", "what is sbert", "없는낱말", "엄브렐러", "ㅋㅋㅋ", "大韓民國"])
def test_a_question_of_known_words_and_one_without_any_stay_as_they_are(library: Library, query: str) -> None:
    asked = ask_as_meant(query, WAY, library.store)
    assert (asked.text, asked.is_corrected) == (query, False)


def test_only_the_word_that_no_passage_holds_is_corrected_and_a_note_says_so(library: Library) -> None:
    notes: list[str] = []
    library.search("가수의 캐니저가 맡은 대표", notes=notes)
    [note] = notes
    assert "가수의 매니저가 맡은 대표" in note
    library.search("가수의 캐니저가 맡은 대표", notes=notes, as_typed=True)
    assert len(notes) == 1


def test_a_question_as_it_was_typed_needs_no_words_for_its_meaning_alone(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with_words = library.search("가수의 대표", by="meaning", as_typed=True, explain=True)
    monkeypatch.setattr(questions, "ask_as_typed", None)
    assert [(hit.id, hit.score) for hit in library.search("가수의 대표", by="meaning", as_typed=True)] == [
        (hit.id, hit.score) for hit in with_words
    ]


def test_a_question_without_spaces_is_encoded_with_some(library: Library) -> None:
    asked = ask_as_meant("대한민국의수도는어디에있는가요", WAY, library.store)
    assert (asked.text, asked.is_corrected) == ("대한민국의 수도는 어디에 있는가요", False)


def test_without_kiwi_and_for_long_texts_nothing_is_changed(library: Library) -> None:
    assert ask_as_meant("캐니저", "bigrams", library.store).text == "캐니저"
    assert ask_as_meant("캐니저 " * 200, WAY, library.store).text == "캐니저 " * 200
