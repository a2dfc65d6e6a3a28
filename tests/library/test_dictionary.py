"""A library with a dictionary: words are made anew and vectors stay; what it holds is found by synonyms, variants and 초성."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from munjang.library.library import Library
from munjang.library.words import question_words, restore_spaces, with_dictionary
from munjang.text.dictionary import Dictionary, parse_dictionary

LINES = """\
word	바람막이왕
synonym	휴대폰	핸드폰
means	음료	사과 주스
variant	쥬스	주스
variant	바람 막이 왕	바람막이왕
stop	추천
"""
TEXTS = {"phone": "가벼운 휴대폰 케이스", "juice": "유기농 사과쥬스 한 병", "coat": "바람 막이 왕 등산 자켓", "tea": "국화차 추천 목록"}


class CountingEncoder:
    """An encoder of hashes that counts what it encodes."""

    name, dimension, fingerprint, max_length = "hashes", 8, "hashes-8", None

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, texts, /):
        texts = list(texts)
        self.encoded += len(texts)
        return np.stack([np.random.default_rng(abs(hash(text)) % 2**32).normal(size=8).astype(np.float32) for text in texts])


@pytest.fixture
def library(tmp_path: Path):
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    with Library.open(tmp_path / "l.db", CountingEncoder()) as opened:
        opened.add([{"id": id, "text": text} for id, text in TEXTS.items()])
        yield opened


def find(library: Library, query: str) -> list[str]:
    return [hit.id for hit in library.search(query, 4, by="words") if hit.score > 0]


def test_words_are_made_anew_and_vectors_stay(library: Library) -> None:
    before = {entry.document.id: entry.vectors_PD for block in library.store.entries() for entry in block}
    encoded = library.encoder.encoded
    assert library.use_dictionary(parse_dictionary(LINES))
    assert not library.use_dictionary(parse_dictionary(LINES))
    after = {entry.document.id: entry.vectors_PD for block in library.store.entries() for entry in block}
    assert library.encoder.encoded == encoded
    assert all(np.array_equal(before[id], after[id]) for id in TEXTS)
    assert library.info().dictionary == 6
    assert library.check() == []


@pytest.mark.parametrize(
    ("query", "id"), [("핸드폰", "phone"), ("사과주스", "juice"), ("음료", "juice"), ("바람막이왕", "coat"), ("ㅂㄹㅁㅇㅇ", "coat")]
)
def test_synonyms_variants_own_words_and_initials_find(library: Library, query: str, id: str) -> None:
    without = find(library, query)
    library.use_dictionary(parse_dictionary(LINES))
    assert find(library, query)[0] == id
    library.use_dictionary(Dictionary())
    assert find(library, query) == without
    assert library.info().dictionary == 0


def test_what_is_added_later_and_by_another_opening_has_the_same_dictionary(library: Library, tmp_path: Path) -> None:
    library.use_dictionary(parse_dictionary(LINES))
    with Library.open(tmp_path / "l.db", CountingEncoder()) as other:
        other.add([{"id": "second", "text": "새 바람 막이 왕"}])
        assert set(find(other, "바람막이왕")) == {"coat", "second"}


def test_one_way_meanings_and_stop_words_stay_one_way() -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    way = with_dictionary("kiwi+stems", parse_dictionary(LINES))
    assert "음료" not in question_words("사과 주스", way)
    assert "추천" not in question_words("휴대폰 추천", way)
    assert question_words("추천", way) == ("추천",)


def test_spaces_come_back_into_questions_without_any_and_into_no_other() -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    assert restore_spaces("대한민국의수도는어디에있는가요", "kiwi") == "대한민국의 수도는 어디에 있는가요"
    for text in ("대한민국의 수도는어디에있는가요", "국민건강보험공단", "what is sbert"):
        assert restore_spaces(text, "kiwi") == text


def test_a_term_is_found_whole_by_synonyms_and_by_its_parts(library: Library) -> None:
    library.add([{"id": "mat", "text": "새벽결 마우스패드 블랙"}, {"id": "shoe", "text": "여름용 실내화 한 켤레"}])
    library.use_dictionary(parse_dictionary("synonym\t마우스패드\t장패드\nsynonym\t실내화\t슬리퍼\n"))
    assert find(library, "장패드") == find(library, "마우스") == ["mat"]
    assert find(library, "슬리퍼") == ["shoe"]


def test_spaces_in_wrong_places_find_the_words_of_a_dictionary(library: Library) -> None:
    library.use_dictionary(parse_dictionary(LINES))
    assert find(library, "바람막 이왕자켓") == find(library, "바람막이 왕자켓") == ["coat"]
    assert find(library, "국 화차") == ["tea"]


def test_a_slip_beside_words_of_a_dictionary_is_corrected(library: Library) -> None:
    """Kiwi's join crashed the process over tokens of a Kiwi with other user words."""
    library.use_dictionary(parse_dictionary(LINES))
    assert find(library, "바람막이왕 자켓") == ["coat"]
    assert library.search("휴대폰 케이즈", 1, by="words")[0].id == "phone"


def test_a_part_of_the_product_titles_is_found_with_the_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kiwipiepy", reason="needs the extra korean")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import product_search

    titles, questions = product_search.read_table("titles")[:40], product_search.read_table("questions")[:40]
    found = product_search.measure(CountingEncoder(), titles, questions, "words")
    assert found["with"].mean() >= 0.95
    assert found["with"].mean() >= found["without"].mean() + 0.1
