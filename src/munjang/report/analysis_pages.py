"""Results of analyses → one HTML page each: keywords marked in their texts, what a classifier is worth.

In: numbers, names and texts, which are data to a page, never markup; parts without numbers are left out. A keyword is marked the stronger,
the closer it is to its text; where phrases overlap, the longer mark wins. The map of texts is left to `text_map`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from munjang.report.page import Line, escape, line_chart, page, section, table, text, wide
from munjang.report.training_words import TrainingWord
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


_LARGEST_MATRIX = 40
"""Labels of a confusion matrix; a larger one cannot be read."""


@dataclass(frozen=True)
class Figure:
    """One measured number and its interval, if it has one."""

    name: Word
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class DoubtfulRow:
    """An example whose label is probably wrong."""

    row: int
    given: str
    suggested: str
    doubt: float
    text: str


@dataclass(frozen=True)
class ClassifierPage:
    """Everything that the page shows."""

    title: str
    lead: str
    figures: Sequence[Figure] = ()
    labels: Sequence[tuple[str, float, float, float, int]] = ()
    """Name, precision, recall, F1, texts."""
    confusion: Sequence[Sequence[int]] = ()
    calibration: Sequence[tuple[float, float]] = ()
    """Probability, share that is right."""
    curve: Sequence[tuple[int, float]] = ()
    """Examples a label, macro-F1."""
    doubtful: Sequence[DoubtfulRow] = field(default=())
    comparison: tuple[str, Sequence[tuple[Word, float, float, float]]] | None = None
    """The other's name; and for each figure this one's, the other's and p."""


def classifier_page(shown: ClassifierPage, *, language: Language = "en") -> str:
    """Return the whole page."""
    parts = [_write_figures(shown, language)]
    if shown.comparison is not None:
        parts.append(_write_comparison(*shown.comparison, language))
    if shown.labels:
        parts.append(_write_labels(shown, language))
    if shown.confusion and len(shown.confusion) <= _LARGEST_MATRIX:
        names = [name for name, *_ in shown.labels]
        rows = [[name, *row] for name, row in zip(names, shown.confusion, strict=True)]
        parts.append(section(say(Word.CONFUSION, language), wide(table(["", *names], rows, numbers=names))))
    if shown.calibration:
        parts.append(_write_calibration(shown.calibration, language))
    if shown.curve:
        line = Line(say(Word.MACRO_F1, language), [float(size) for size, _ in shown.curve], [score for _, score in shown.curve])
        title = say(Word.LEARNING_CURVE, language)
        x_title, y_title = say(Word.EXAMPLES_A_LABEL, language), say(Word.MACRO_F1, language)
        parts.append(section(title, line_chart([line], title=title, x_title=x_title, y_title=y_title, language=language)))
    if shown.doubtful:
        head = [say(word, language) for word in (Word.ROW, Word.LABEL, Word.SUGGESTED, Word.DOUBT, Word.TEXT)]
        rows = [[str(each.row), each.given, each.suggested, f"{each.doubt:.2f}", each.text] for each in shown.doubtful]
        body = text(say(Word.DOUBTFUL_LEAD, language), style="quiet") + wide(table(head, rows, numbers=[head[0], head[3]]))
        parts.append(section(say(Word.DOUBTFUL_LABELS, language), body))
    return page(shown.title, parts, lead=shown.lead, footer=say(Word.CLASSIFY_FOOTER, language), language=language)


def _write_figures(shown: ClassifierPage, language: Language) -> str:
    head = ["", say(TrainingWord.VALUE, language), say(Word.INTERVAL_95, language)]
    rows = [
        [say(each.name, language), each.value, "" if each.interval is None else f"{each.interval[0]:.4f} – {each.interval[1]:.4f}"]
        for each in shown.figures
    ]
    return table(head, rows, numbers=head[1:]) if rows else ""


def _write_comparison(other: str, rows: Sequence[tuple[Word, float, float, float]], language: Language) -> str:
    head = ["", say(TrainingWord.VALUE, language), other, say(Word.DIFFERENCE, language), "p"]
    body = table(head, [[say(name, language), a, b, a - b, p] for name, a, b, p in rows], numbers=head[1:])
    return section(say(Word.COMPARISON, language, other=other), body)


def _write_labels(shown: ClassifierPage, language: Language) -> str:
    head = [say(word, language) for word in (Word.LABEL, Word.PRECISION, Word.RECALL)] + ["F1", say(Word.NUMBER_OF_TEXTS, language)]
    rows = [[name, _number(precision), _number(recall), _number(f1), size] for name, precision, recall, f1, size in shown.labels]
    return section(say(Word.LABELS_OF_TEXTS, language), wide(table(head, rows, numbers=head[1:])))


def _write_calibration(bins: Sequence[tuple[float, float]], language: Language) -> str:
    title = say(Word.CALIBRATION, language)
    lines = [
        Line(say(Word.SHARE_RIGHT, language), [each for each, _ in bins], [each for _, each in bins]),
        Line(say(Word.PERFECT, language), [0.0, 1.0], [0.0, 1.0]),
    ]
    x_title, y_title = say(Word.PROBABILITY, language), say(Word.SHARE_RIGHT, language)
    lead = text(say(Word.CALIBRATION_LEAD, language), style="quiet")
    return section(title, lead + line_chart(lines, title=title, x_title=x_title, y_title=y_title, language=language))


def _number(value: float) -> object:
    return value if value == value else "–"
