"""What a page about topics shows, as plain values: the report room computes nothing about topics, it only draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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


def topic_colour(place: int) -> str:
    """Return the colour of the topic at a place; neighbours differ, and all are seen on light and dark paper.

    >>> topic_colour(0)
    'hsl(210 62% 52%)'
    """
    return f"hsl({(210 + place * 137.508) % 360:.0f} {62 - place % 3 * 10}% {52 - place % 2 * 6}%)"


def shortened(text: str, width: int) -> str:
    """Cut a text to a width in half-width columns; Hangul and Han take two.

    >>> shortened("비가 온다", 5), shortened("rain", 5)
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
