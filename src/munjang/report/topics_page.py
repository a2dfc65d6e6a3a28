"""Topics → one self-contained HTML page: facts, map, words, tree, time line, classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from munjang.report.page import escape, page, section, table, text, wide
from munjang.report.words import Word, say
from munjang.wording import Language


@dataclass(frozen=True)
class TopicView:
    """One topic: its number, name, words with weights, size, typical documents, coherence, and where it lies on the map."""

    id: int
    name: str
    words: Sequence[tuple[str, float]]
    size: int
    documents: Sequence[str]
    coherence: float
    place: tuple[float, float]


@dataclass(frozen=True)
class JoinView:
    """Two nodes of the tree become one; topics are nodes 0, 1, … in the order in which they are listed."""

    a: int
    b: int
    distance: float


@dataclass(frozen=True)
class SlicesView:
    """How many documents of each topic, in the order listed, fall into each period or class."""

    names: Sequence[str]
    counts: Sequence[Sequence[int]]


def choose_topic_colour(place: int) -> str:
    """Return the colour of the topic at a place; neighbours differ, and all are seen on light and dark paper.

    >>> choose_topic_colour(0)
    'hsl(210 62% 52%)'
    """
    return f"hsl({(210 + place * 137.508) % 360:.0f} {62 - place % 3 * 10}% {52 - place % 2 * 6}%)"


def shorten_label(text: str, width: int) -> str:
    """Cut a text to a width in half-width columns; Hangul and Han take two.

    >>> shorten_label("비가 온다", 5), shorten_label("rain", 5)
    ('비가…', 'rain')
    """
    total = 0
    for place, ch in enumerate(text):
        total += columns(ch)
        if total > width:
            kept, room = text[:place], width - 1
            while sum(map(columns, kept)) > room:
                kept = kept[:-1]
            return kept.rstrip() + "…"
    return text


def columns(ch: str) -> int:
    """Return how many half-width columns a character takes."""
    return 2 if ord(ch) >= 0x1100 else 1


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
    return f'<div class="cards">{"".join(_write_card(topic, place, language) for place, topic in enumerate(topics))}</div>'


def topic_tree(topics: Sequence[TopicView], joins: Sequence[JoinView], *, language: Language = "en") -> str:
    """Return the tree, leaves on the left in an order in which no lines cross, joins to the right by their distance."""
    order = _list_leaves(len(topics), joins)
    row = {leaf: place for place, leaf in enumerate(order)}
    farthest = max((join.distance for join in joins), default=1.0) or 1.0
    spots = {leaf: (float(_NAMES), (row[leaf] + 0.5) * _ROW) for leaf in order}
    parts = [_write_name(topics[leaf], leaf, (row[leaf] + 0.5) * _ROW) for leaf in order]
    for number, join in enumerate(joins):
        (ax, ay), (bx, by) = spots[join.a], spots[join.b]
        x = max(ax, bx, _NAMES + join.distance / farthest * (_CHART - 10))
        parts.append(f'<path d="M{ax:.1f} {ay:.1f}H{x:.1f}V{by:.1f}H{bx:.1f}" fill="none" stroke="currentColor" stroke-opacity="0.55"/>')
        spots[len(topics) + number] = (x, (ay + by) / 2)
    return _write_svg(say(Word.TREE_OF_TOPICS, language), len(order) * _ROW + 8, "".join(parts))


def time_line(topics: Sequence[TopicView], slices: SlicesView, *, language: Language = "en") -> str:
    """Return a line of areas for each of the largest topics: its share of the documents of each period."""
    totals = [sum(counts) or 1 for counts in slices.counts]
    step = _CHART / max(1, len(slices.names))
    shown = range(min(len(topics), TOPICS_OVER_TIME))
    highest = max((counts[k] / total for counts, total in zip(slices.counts, totals, strict=True) for k in shown), default=1.0) or 1.0
    parts = []
    for place in shown:
        base = (place + 1) * _ROW * 1.4
        parts.append(_write_name(topics[place], place, base - _ROW / 2))
        parts.append(
            f'<line x1="{_NAMES}" x2="{_NAMES + _CHART}" y1="{base:.1f}" y2="{base:.1f}" stroke="currentColor" stroke-opacity="0.2"/>'
        )
        for period, (counts, total) in enumerate(zip(slices.counts, totals, strict=True)):
            height = counts[place] / total / highest * _ROW * 1.25
            about = escape(say(Word.PERIOD_TITLE, language, period=slices.names[period], count=counts[place]))
            parts.append(
                f'<rect x="{_NAMES + period * step:.1f}" y="{base - height:.1f}" width="{max(step - 1, 0.5):.1f}" height="{height:.1f}" '
                f'fill="{choose_topic_colour(place)}"><title>{about}</title></rect>'
            )
    bottom = len(shown) * _ROW * 1.4 + 16
    every = max(1, -(-len(slices.names) // 8))
    parts += [
        f'<text x="{_NAMES + period * step:.1f}" y="{bottom:.1f}">{escape(slices.names[period])}</text>'
        for period in range(0, len(slices.names), every)
    ]
    return _write_svg(say(Word.TOPICS_OVER_TIME, language), bottom + 8, "".join(parts))


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


def _write_card(topic: TopicView, place: int, language: Language) -> str:
    colour = choose_topic_colour(place)
    strongest = max((weight for _, weight in topic.words), default=1.0) or 1.0
    bars = "".join(
        f'<span>{escape(word)}</span><i style="width:{max(2.0, 100 * weight / strongest):.0f}%;background:{colour}"></i>'
        for word, weight in topic.words
    )
    quotes = "".join(f"<blockquote>{escape(document)}</blockquote>" for document in topic.documents)
    badge = f'<span class="badge" style="border-color:{colour}">{topic.id}</span>'
    facts = text(say(Word.TOPIC_FACTS, language, count=topic.size, coherence=topic.coherence), tag="div", style="quiet")
    return f'<article class="card"><h3>{badge}{escape(topic.name)}</h3>{facts}<div class="bars">{bars}</div>{quotes}</article>'


def _list_leaves(count: int, joins: Sequence[JoinView]) -> list[int]:
    under = [[leaf] for leaf in range(count)]
    for join in joins:
        under.append(under[join.a] + under[join.b])
    return under[-1] if under else []


def _write_name(topic: TopicView, place: int, y: float) -> str:
    return (
        f'<circle cx="8" cy="{y:.1f}" r="5" fill="{choose_topic_colour(place)}"/>'
        f'<text x="20" y="{y + 4:.1f}">{escape(shorten_label(f"{topic.id} {topic.name}", NAME_COLUMNS))}</text>'
    )


def _write_svg(label: str, height: float, body: str) -> str:
    width = _NAMES + _CHART + 10
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" role="img" aria-label="{escape(label)}" '
        f'font-size="12" fill="currentColor">{body}</svg>'
    )


WIDTH, MARGIN, GAP = 920, 12, 6
SHARE = 0.42
"""The part of a square of this width that bubbles fill."""
DOTS = 4_000
"""Dots of a whole map; beyond, a dot stands for several documents."""
SMALLEST = 10.0
"""The least size of letters; a bubble without room for words of this size shows its number only."""
_ROUNDS = 600
_TURN = math.pi * (3 - math.sqrt(5))  # the angle by which a sunflower sets its seeds


def bubble_map(topics: Sequence[TopicView], *, language: Language = "en") -> str:
    """Return the map; a bubble's area is the number of its documents."""
    radii = _compute_radii([topic.size for topic in topics])
    places = _push_apart(_spread_out([topic.place for topic in topics]), radii)
    low_x, low_y = (min((place[axis] - r for place, r in zip(places, radii, strict=True)), default=0) - MARGIN for axis in (0, 1))
    high_x, high_y = (max((place[axis] + r for place, r in zip(places, radii, strict=True)), default=1) + MARGIN for axis in (0, 1))
    each = max(1, math.ceil(sum(topic.size for topic in topics) / DOTS))
    body = "".join(
        _draw_bubble(topic, number, place, radius, each, language)
        for number, (topic, place, radius) in enumerate(zip(topics, places, radii, strict=True))
    )
    scale = WIDTH / max(high_x - low_x, 1)
    height = (high_y - low_y) * scale
    return (
        f'<svg viewBox="{low_x:.1f} {low_y:.1f} {high_x - low_x:.1f} {high_y - low_y:.1f}" width="{WIDTH}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(say(Word.MAP_OF_TOPICS, language))}" fill="currentColor" text-anchor="middle">{body}</svg>'
    )


def _compute_radii(sizes: Sequence[int]) -> list[float]:
    whole = sum(sizes) or 1
    return [max(7.0, math.sqrt(SHARE * WIDTH * WIDTH * 0.6 * size / whole / math.pi)) for size in sizes]


def _spread_out(places: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Scale places to the map; places that fall together are set apart by a hair, each in its own direction."""
    reach = max((abs(value) for place in places for value in place), default=0.0) or 1.0
    return [
        [x / reach * WIDTH * 0.45 + math.cos(number * _TURN), y / reach * WIDTH * 0.3 + math.sin(number * _TURN)]
        for number, (x, y) in enumerate(places)
    ]


def _push_apart(places: list[list[float]], radii: Sequence[float]) -> list[list[float]]:
    for _ in range(_ROUNDS):
        moved = False
        for a in range(len(places)):
            for b in range(a):
                x, y = places[a][0] - places[b][0], places[a][1] - places[b][1]
                distance = math.hypot(x, y) or 1e-6
                push = (radii[a] + radii[b] + GAP - distance) / 2
                if push > 0.05:
                    moved = True
                    for axis, part in ((0, x / distance), (1, y / distance)):
                        places[a][axis] += part * push
                        places[b][axis] -= part * push
        if not moved:
            break
    return places


def _draw_bubble(topic: TopicView, number: int, place: Sequence[float], radius: float, each: int, language: Language) -> str:
    x, y = place
    colour = choose_topic_colour(number)
    title = f"<title>{escape(say(Word.TOPIC_TITLE, language, id=topic.id, name=topic.name, count=topic.size))}</title>"
    parts = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.16" stroke="{colour}"/>']
    dots = topic.size // each
    for dot in range(dots):
        away, turn = (radius - 3) * math.sqrt((dot + 0.5) / dots), dot * _TURN
        at = f'cx="{x + away * math.cos(turn):.1f}" cy="{y + away * math.sin(turn):.1f}"'
        parts.append(f'<circle {at} r="1.3" fill="{colour}" fill-opacity="0.6"/>')
    return f'<g class="bubble">{title}{"".join(parts)}{_write_caption(topic, x, y, radius)}</g>'


def _write_caption(topic: TopicView, x: float, y: float, radius: float) -> str:
    """Write the number, and as many of the strongest words as there is room for."""
    size = max(SMALLEST, min(15.0, radius / 3.2))
    room = int(2 * radius * 0.86 / (size * 0.56))
    words = [shorten_label(word, room) for word, _ in topic.words[: max(0, int(radius / size) - 1)][:3]]
    lines = [str(topic.id), *words] if radius >= 18 and words and max(map(_measure_text, words)) <= room else [str(topic.id)]
    first = y - (len(lines) - 1) * size * 0.62 + size * 0.35
    return "".join(
        f'<text x="{x:.1f}" y="{first + place * size * 1.24:.1f}" font-size="{size:.1f}" font-weight="{400 if place else 700}">'
        f"{escape(line)}</text>"
        for place, line in enumerate(lines)
    )


def _measure_text(text: str) -> int:
    return sum(map(columns, text))


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
