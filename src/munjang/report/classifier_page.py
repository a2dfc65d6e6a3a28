"""What a classifier of texts is worth → one HTML page: figures, labels, confusion, calibration, learning curve, doubtful labels.

In: numbers and names. Parts without numbers are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from munjang.report.page import Line, line_chart, page, section, table, text, wide
from munjang.report.training_words import TrainingWord
from munjang.report.words import Word, say
from munjang.wording import Language

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
