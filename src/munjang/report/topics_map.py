"""Topics → a map as SVG: a bubble for each topic, a dot in it for each document (or for several), no two bubbles overlapping.

Bubbles start where the topics lie in the space of meaning and are pushed apart until none touches; so near bubbles are near in meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from munjang.report.page import escape
from munjang.report.topics_view import TopicView, columns, shortened, topic_colour
from munjang.report.words import Word, say
from munjang.wording import Language

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
    radii = _radii([topic.size for topic in topics])
    places = _apart(_spread([topic.place for topic in topics]), radii)
    low_x, low_y = (min((place[axis] - r for place, r in zip(places, radii, strict=True)), default=0) - MARGIN for axis in (0, 1))
    high_x, high_y = (max((place[axis] + r for place, r in zip(places, radii, strict=True)), default=1) + MARGIN for axis in (0, 1))
    each = max(1, math.ceil(sum(topic.size for topic in topics) / DOTS))
    body = "".join(
        _bubble(topic, number, place, radius, each, language)
        for number, (topic, place, radius) in enumerate(zip(topics, places, radii, strict=True))
    )
    scale = WIDTH / max(high_x - low_x, 1)
    height = (high_y - low_y) * scale
    return (
        f'<svg viewBox="{low_x:.1f} {low_y:.1f} {high_x - low_x:.1f} {high_y - low_y:.1f}" width="{WIDTH}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(say(Word.MAP_OF_TOPICS, language))}" fill="currentColor" text-anchor="middle">{body}</svg>'
    )


def _radii(sizes: Sequence[int]) -> list[float]:
    whole = sum(sizes) or 1
    return [max(7.0, math.sqrt(SHARE * WIDTH * WIDTH * 0.6 * size / whole / math.pi)) for size in sizes]


def _spread(places: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Scale places to the map; places that fall together are set apart by a hair, each in its own direction."""
    reach = max((abs(value) for place in places for value in place), default=0.0) or 1.0
    return [
        [x / reach * WIDTH * 0.45 + math.cos(number * _TURN), y / reach * WIDTH * 0.3 + math.sin(number * _TURN)]
        for number, (x, y) in enumerate(places)
    ]


def _apart(places: list[list[float]], radii: Sequence[float]) -> list[list[float]]:
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


def _bubble(topic: TopicView, number: int, place: Sequence[float], radius: float, each: int, language: Language) -> str:
    x, y = place
    colour = topic_colour(number)
    title = f"<title>{escape(say(Word.TOPIC_TITLE, language, id=topic.id, name=topic.name, count=topic.size))}</title>"
    parts = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.16" stroke="{colour}"/>']
    dots = topic.size // each
    for dot in range(dots):
        away, turn = (radius - 3) * math.sqrt((dot + 0.5) / dots), dot * _TURN
        at = f'cx="{x + away * math.cos(turn):.1f}" cy="{y + away * math.sin(turn):.1f}"'
        parts.append(f'<circle {at} r="1.3" fill="{colour}" fill-opacity="0.6"/>')
    return f'<g class="bubble">{title}{"".join(parts)}{_caption(topic, x, y, radius)}</g>'


def _caption(topic: TopicView, x: float, y: float, radius: float) -> str:
    """Write the number, and as many of the strongest words as there is room for."""
    size = max(SMALLEST, min(15.0, radius / 3.2))
    room = int(2 * radius * 0.86 / (size * 0.56))
    words = [shortened(word, room) for word, _ in topic.words[: max(0, int(radius / size) - 1)][:3]]
    lines = [str(topic.id), *words] if radius >= 18 and words and max(map(_width, words)) <= room else [str(topic.id)]
    first = y - (len(lines) - 1) * size * 0.62 + size * 0.35
    return "".join(
        f'<text x="{x:.1f}" y="{first + place * size * 1.24:.1f}" font-size="{size:.1f}" font-weight="{400 if place else 700}">'
        f"{escape(line)}</text>"
        for place, line in enumerate(lines)
    )


def _width(text: str) -> int:
    return sum(map(columns, text))
