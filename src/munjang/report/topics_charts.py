"""Topics → cards with bars for their words, a tree of the topics, a time line and a table per class; HTML and SVG, no script."""

from __future__ import annotations

from collections.abc import Sequence

from munjang.report.page import escape, table, text
from munjang.report.topics_view import JoinView, SlicesView, TopicView, shortened, topic_colour
from munjang.report.words import Word, say
from munjang.wording import Language

NAME_COLUMNS = 32
"""Half-width columns for a topic's name in the tree and the time line."""
TOPICS_OVER_TIME = 24
"""Topics of the time line, the largest."""
_ROW, _NAMES, _CHART = 24, 240, 600

STYLE = """<style>
body { max-width: 72rem; }
th, td:first-child { white-space: nowrap; }
.wide td:last-child { min-width: 11rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; min-width: 0; }
.card h3 { margin: 0 0 .25rem; font-size: 1rem; }
.card .badge { display: inline-block; min-width: 1.6em; padding: 0 .3em; margin-right: .4em; border-radius: .3em; text-align: center;
  border: 2px solid; }
.bars { display: grid; grid-template-columns: minmax(4em, max-content) 1fr; gap: .1rem .6rem; margin: .5rem 0; font-size: .9rem; }
.bars i { display: block; align-self: center; height: .7em; border-radius: .2em; }
.card blockquote { margin: .4rem 0; padding-left: .6rem; border-left: 2px solid var(--line); font-size: .82rem; color: var(--quiet); }
.bubble text { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
</style>"""


def topic_cards(topics: Sequence[TopicView], *, language: Language = "en") -> str:
    """Return a card for each topic: number, name, size, words with bars, typical documents."""
    return f'<div class="cards">{"".join(_card(topic, place, language) for place, topic in enumerate(topics))}</div>'


def topic_tree(topics: Sequence[TopicView], joins: Sequence[JoinView], *, language: Language = "en") -> str:
    """Return the tree, leaves on the left in an order in which no lines cross, joins to the right by their distance."""
    order = _leaves(len(topics), joins)
    row = {leaf: place for place, leaf in enumerate(order)}
    farthest = max((join.distance for join in joins), default=1.0) or 1.0
    spots = {leaf: (float(_NAMES), (row[leaf] + 0.5) * _ROW) for leaf in order}
    parts = [_name(topics[leaf], leaf, (row[leaf] + 0.5) * _ROW) for leaf in order]
    for number, join in enumerate(joins):
        (ax, ay), (bx, by) = spots[join.a], spots[join.b]
        x = max(ax, bx, _NAMES + join.distance / farthest * (_CHART - 10))
        parts.append(f'<path d="M{ax:.1f} {ay:.1f}H{x:.1f}V{by:.1f}H{bx:.1f}" fill="none" stroke="currentColor" stroke-opacity="0.55"/>')
        spots[len(topics) + number] = (x, (ay + by) / 2)
    return _svg(say(Word.TREE_OF_TOPICS, language), len(order) * _ROW + 8, "".join(parts))


def time_line(topics: Sequence[TopicView], slices: SlicesView, *, language: Language = "en") -> str:
    """Return a line of areas for each of the largest topics: its share of the documents of each period."""
    totals = [sum(counts) or 1 for counts in slices.counts]
    step = _CHART / max(1, len(slices.names))
    shown = range(min(len(topics), TOPICS_OVER_TIME))
    highest = max((counts[k] / total for counts, total in zip(slices.counts, totals, strict=True) for k in shown), default=1.0) or 1.0
    parts = []
    for place in shown:
        base = (place + 1) * _ROW * 1.4
        parts.append(_name(topics[place], place, base - _ROW / 2))
        parts.append(
            f'<line x1="{_NAMES}" x2="{_NAMES + _CHART}" y1="{base:.1f}" y2="{base:.1f}" stroke="currentColor" stroke-opacity="0.2"/>'
        )
        for period, (counts, total) in enumerate(zip(slices.counts, totals, strict=True)):
            height = counts[place] / total / highest * _ROW * 1.25
            about = escape(say(Word.PERIOD_TITLE, language, period=slices.names[period], count=counts[place]))
            parts.append(
                f'<rect x="{_NAMES + period * step:.1f}" y="{base - height:.1f}" width="{max(step - 1, 0.5):.1f}" height="{height:.1f}" '
                f'fill="{topic_colour(place)}"><title>{about}</title></rect>'
            )
    bottom = len(shown) * _ROW * 1.4 + 16
    every = max(1, -(-len(slices.names) // 8))
    parts += [
        f'<text x="{_NAMES + period * step:.1f}" y="{bottom:.1f}">{escape(slices.names[period])}</text>'
        for period in range(0, len(slices.names), every)
    ]
    return _svg(say(Word.TOPICS_OVER_TIME, language), bottom + 8, "".join(parts))


def class_table(topics: Sequence[TopicView], slices: SlicesView, *, top: int = 3, language: Language = "en") -> str:
    """Return each class with its largest topics and their share of the class."""
    rows = []
    for name, counts in zip(slices.names, slices.counts, strict=True):
        total = sum(counts) or 1
        best = sorted(range(len(counts)), key=lambda k: (-counts[k], k))[:top]
        said = ", ".join(f"{topics[k].id} {topics[k].name} ({counts[k] / total:.0%})" for k in best if counts[k])
        rows.append((name, sum(counts), said))
    head = [say(word, language) for word in (Word.CLASS, Word.NUMBER_OF_DOCUMENTS, Word.LARGEST_TOPICS)]
    return table(head, rows, numbers=head[1:2])


def _card(topic: TopicView, place: int, language: Language) -> str:
    colour = topic_colour(place)
    strongest = max((weight for _, weight in topic.words), default=1.0) or 1.0
    bars = "".join(
        f'<span>{escape(word)}</span><i style="width:{max(2.0, 100 * weight / strongest):.0f}%;background:{colour}"></i>'
        for word, weight in topic.words
    )
    quotes = "".join(f"<blockquote>{escape(document)}</blockquote>" for document in topic.documents)
    badge = f'<span class="badge" style="border-color:{colour}">{topic.id}</span>'
    facts = text(say(Word.TOPIC_FACTS, language, count=topic.size, coherence=topic.coherence), tag="div", style="quiet")
    return f'<article class="card"><h3>{badge}{escape(topic.name)}</h3>{facts}<div class="bars">{bars}</div>{quotes}</article>'


def _leaves(count: int, joins: Sequence[JoinView]) -> list[int]:
    under = [[leaf] for leaf in range(count)]
    for join in joins:
        under.append(under[join.a] + under[join.b])
    return under[-1] if under else []


def _name(topic: TopicView, place: int, y: float) -> str:
    return (
        f'<circle cx="8" cy="{y:.1f}" r="5" fill="{topic_colour(place)}"/>'
        f'<text x="20" y="{y + 4:.1f}">{escape(shortened(f"{topic.id} {topic.name}", NAME_COLUMNS))}</text>'
    )


def _svg(label: str, height: float, body: str) -> str:
    width = _NAMES + _CHART + 10
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" role="img" aria-label="{escape(label)}" '
        f'font-size="12" fill="currentColor">{body}</svg>'
    )
