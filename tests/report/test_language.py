"""Every page in Korean: its language is set, and with Korean data not one English word is left."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.report.visible import english_words, language_of, visible

from munjang.report.analysis_pages import Marked, keywords_page
from munjang.report.page import Bars, Line, histogram, line_chart
from munjang.report.text_map import MAX_COLOURS, MapPoint, map_page
from munjang.report.topics_page import JoinView, SlicesView, TopicView, topics_page
from munjang.report.words import Word, say
from munjang.wording import Language

TOPICS = [TopicView(n, f"이름 {n}", [("투표", 0.5)], 40 - n, ["글 하나"], 0.1, (math.cos(n), math.sin(n))) for n in range(3)]
SLICES = SlicesView(["2023", "2024"], [[1, 2, 3], [3, 2, 1]])


def topics(language: Language) -> str:
    facts = [(say(word, language), "3") for word in (Word.NUMBER_OF_DOCUMENTS, Word.OUTLIERS, Word.DIVERSITY)]
    joins = [JoinView(0, 1, 0.2), JoinView(2, 3, 0.5)]
    return topics_page("뉴스", TOPICS, facts=facts, joins=joins, over_time=SLICES, per_class=SLICES, language=language)


def keywords(language: Language) -> str:
    return keywords_page([Marked("1", "겨울 날씨", [("날씨", 0.5)], [(3, 5, 0.5)]), Marked("2", "", [], [])], language=language)


def drawn_map(language: Language) -> str:
    points = [MapPoint(str(n), "글", f"무리 {n}") for n in range(MAX_COLOURS + 2)] + [MapPoint("끝", "글", None)]
    places = np.linspace(0, 1, 2 * len(points), dtype=np.float32).reshape(-1, 2)
    return map_page(places, points, title="지도", lead="", language=language)


PAGES = pytest.mark.parametrize("page", [topics, keywords, drawn_map])


@PAGES
def test_a_korean_page_is_korean_throughout(page: Callable[[Language], str]) -> None:
    html = page("ko")
    assert language_of(html) == "ko"
    assert english_words(html, frozenset({"munjang", "topics"})) == []


@PAGES
def test_the_same_page_in_english_says_so(page: Callable[[Language], str]) -> None:
    assert language_of(page("en")) == "en"
    assert english_words(page("en"))


def test_the_topic_page_names_its_parts() -> None:
    seen = visible(topics("ko"))
    for text in ("지도", "주제", "주제의 계층", "시간에 따른 변화", "분류별 주제", "문서 수", "이상치", "문서 40건 · 일관성 0.10"):
        assert text in seen
    assert {"주제 지도", "주제의 계층 나무", "시간에 따른 주제의 변화", "0: 이름 0 (문서 40건)", "2023: 문서 1건"} <= set(seen)


def test_the_map_names_its_controls_and_its_grey_groups() -> None:
    assert {"검색", "글의 지도", "확대", "축소", "전체 보기", "그 밖", "없음"} <= set(visible(drawn_map("ko")))
    assert "검색" not in drawn_map("en")


def test_charts_say_what_they_lack_and_what_their_axis_is() -> None:
    empty = line_chart([Line("1단계", [], [])], title="손실", x_title="스텝", y_title="손실", language="ko")
    assert "잰 값이 없습니다" in visible(empty)
    bars = histogram([Bars("비슷한 쌍", [0.5])], title="분포", x_title="코사인", bounds=(-1.0, 1.0), language="ko")
    assert "쌍의 비율" in visible(bars)
    assert english_words(empty + bars) == []
