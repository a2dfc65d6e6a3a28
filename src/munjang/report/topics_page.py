"""Topics → one self-contained HTML page: facts, map, words, tree, time line, classes."""

from __future__ import annotations

from collections.abc import Sequence

from munjang.report.page import page, section, table, wide
from munjang.report.topics_charts import STYLE, class_table, time_line, topic_cards, topic_tree
from munjang.report.topics_map import bubble_map
from munjang.report.topics_view import JoinView, SlicesView, TopicView


def topics_page(
    title: str,
    topics: Sequence[TopicView],
    *,
    facts: Sequence[tuple[str, str]] = (),
    joins: Sequence[JoinView] = (),
    over_time: SlicesView | None = None,
    per_class: SlicesView | None = None,
) -> str:
    """Return the page; every text is escaped here."""
    parts = [STYLE, wide(table(("", " "), facts))] if facts else [STYLE]
    if topics:
        parts.append(section("Map", wide(bubble_map(topics))))
        parts.append(section("Topics", topic_cards(topics)))
    if joins:
        parts.append(section("Hierarchy", wide(topic_tree(topics, joins))))
    if over_time is not None:
        parts.append(section("Over time", wide(time_line(topics, over_time))))
    if per_class is not None:
        parts.append(section("Per class", wide(class_table(topics, per_class))))
    lead = "A bubble is a topic, a dot a document; near bubbles are near in meaning. A number names the same topic everywhere."
    return page(title, parts, lead=lead, footer="Made by munjang topics.")
