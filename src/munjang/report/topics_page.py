"""Topics → one self-contained HTML page: facts, map, words, tree, time line, classes."""

from __future__ import annotations

from collections.abc import Sequence

from munjang.report.page import page, section, table, wide
from munjang.report.topics_charts import STYLE, class_table, time_line, topic_cards, topic_tree
from munjang.report.topics_map import bubble_map
from munjang.report.topics_view import JoinView, SlicesView, TopicView
from munjang.report.words import Word, say
from munjang.wording import Language


def topics_page(
    title: str,
    topics: Sequence[TopicView],
    *,
    facts: Sequence[tuple[str, str]] = (),
    joins: Sequence[JoinView] = (),
    over_time: SlicesView | None = None,
    per_class: SlicesView | None = None,
    language: Language = "en",
) -> str:
    """Return the page; every text is escaped here."""
    parts = [STYLE, wide(table(("", " "), facts))] if facts else [STYLE]
    if topics:
        parts.append(section(say(Word.MAP, language), wide(bubble_map(topics, language=language))))
        parts.append(section(say(Word.TOPICS, language), topic_cards(topics, language=language)))
    if joins:
        parts.append(section(say(Word.HIERARCHY, language), wide(topic_tree(topics, joins, language=language))))
    if over_time is not None:
        parts.append(section(say(Word.OVER_TIME, language), wide(time_line(topics, over_time, language=language))))
    if per_class is not None:
        parts.append(section(say(Word.PER_CLASS, language), wide(class_table(topics, per_class, language=language))))
    lead, footer = say(Word.TOPICS_LEAD, language), say(Word.TOPICS_FOOTER, language)
    return page(title, parts, lead=lead, footer=footer, language=language)
