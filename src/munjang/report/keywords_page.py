"""Texts with the places of their keywords → one HTML page on which the keywords stand out in their texts.

A phrase is marked the stronger, the closer it is to its text. Where phrases overlap, the longer mark wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from munjang.report.page import escape, page, text
from munjang.report.words import Word, say
from munjang.wording import Language

_STYLE = """<style>
.texts { display: grid; gap: 1.25rem; }
.texts article { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; }
.texts p { margin: .5rem 0; white-space: pre-line; }
.texts h2 { border: 0; margin: 0; padding: 0; font-size: .85rem; color: var(--quiet); }
mark { background: rgb(234 170 8 / var(--deep)); color: inherit; border-radius: .2rem; padding: 0 .1rem; }
.words { display: flex; flex-wrap: wrap; gap: .35rem; padding: 0; margin: .5rem 0 0; list-style: none; font-size: .9rem; }
.words li { border: 1px solid var(--line); border-radius: 1rem; padding: 0 .6rem; }
.words span { color: var(--quiet); font-variant-numeric: tabular-nums; }
</style>"""

_LEVELS = (0.25, 0.4, 0.55)  # opacity of a mark: far, nearer, nearest


@dataclass(frozen=True)
class Marked:
    """One text: its name, what it says, its keywords with scores, and (start, end, score) of every place."""

    name: str
    text: str
    keywords: Sequence[tuple[str, float]]
    places: Sequence[tuple[int, int, float]]


def keywords_page(texts: Sequence[Marked], *, language: Language = "en") -> str:
    """Return the whole page."""
    articles = "\n".join(_write_article(each, language) for each in texts)
    title, lead = say(Word.KEYWORDS, language), say(Word.TEXTS, language, count=len(texts))
    return page(title, [_STYLE, f'<div class="texts">\n{articles}\n</div>'], lead=lead, language=language)


def drop_overlaps(places: Sequence[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Return places that do not overlap, in order; of two that do, the longer one stays, of equal ones the first.

    >>> drop_overlaps([(0, 2, 0.9), (0, 5, 0.5), (6, 8, 0.4)])
    [(0, 5, 0.5), (6, 8, 0.4)]
    """
    kept: list[tuple[int, int, float]] = []
    for start, end, score in sorted(set(places), key=lambda place: (place[0] - place[1], place[0])):
        if all(end <= other or start >= stop for other, stop, _ in kept):
            kept.append((start, end, score))
    return sorted(kept)


def _write_article(each: Marked, language: Language) -> str:
    words = "".join(f"<li>{escape(word)} <span>{score:.2f}</span></li>" for word, score in each.keywords)
    listed = f'<ul class="words">{words}</ul>' if words else text(say(Word.NO_KEYWORDS, language), style="quiet")
    return f"<article>{text(each.name, tag='h2')}<p>{_mark(each)}</p>{listed}</article>"


def _mark(each: Marked) -> str:
    parts, at = [], 0
    low, high = min((s for *_, s in each.places), default=0.0), max((s for *_, s in each.places), default=0.0)
    for start, end, score in drop_overlaps(each.places):
        share = (score - low) / (high - low) if high > low else 1.0
        deep = _LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)]
        parts.append(f'{escape(each.text[at:start])}<mark style="--deep: {deep}">{escape(each.text[start:end])}</mark>')
        at = end
    return "".join([*parts, escape(each.text[at:])])
