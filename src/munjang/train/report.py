"""What a training did, as one HTML page: the loss, the dev score, and how the vectors lie.

In: the outcome of a training. Out: HTML text. The cosines of random pairs beside those of labelled ones show whether the space has spread
or collapsed; a collapse is said in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from munjang.report.page import Bars, Line, histogram, line_chart, page, table, text
from munjang.report.training_words import TrainingWord
from munjang.report.words import Word, in_language, say
from munjang.train.diagnoses import Diagnosis, diagnose_answers
from munjang.train.examples import Example
from munjang.train.log import Answers, TrainingLog
from munjang.wording import Language

PAIRS = 500
"""Pairs whose cosines are drawn."""
COLLAPSED = 0.9
"""Mean cosine of random pairs from which the space counts as collapsed."""

_SPREADS = {
    "cosine": (TrainingWord.COSINES, TrainingWord.COSINES_OF_PAIRS, Word.COSINE),
    "score": (TrainingWord.SCORES, TrainingWord.SCORES_OF_PAIRS, TrainingWord.SCORE),
}
"""Heading, title and axis of the histogram, by what is measured."""


@dataclass(frozen=True)
class Spread:
    """Cosines (or a cross-encoder's scores) of pairs that belong together or carry a high label, of the other ones, and of random pairs."""

    alike: tuple[float, ...]
    unlike: tuple[float, ...]
    random: tuple[float, ...]
    measure: Literal["cosine", "score"] = "cosine"
    answers: Answers | None = None
    """Of a cross-encoder, what it answers to the labelled rows among these."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which numbers the values lie."""
        if self.measure == "cosine":
            return -1.0, 1.0
        values = (0.0, 1.0, *self.alike, *self.unlike, *self.random)
        return min(values), max(values)

    @property
    def collapsed(self) -> bool:
        """Whether random pairs look alike, or no two vectors differ; of scores, whether all are the same."""
        if self.measure == "score":
            return bool(self.alike) and float(np.std([*self.alike, *self.unlike, *self.random])) < 1e-4
        return bool(self.random) and (float(np.mean(self.random)) > COLLAPSED or float(np.std(self.random)) < 1e-4)

    def diagnosis(self, stage: int) -> Diagnosis | None:
        """Return what is wrong with the model that stage `stage` made, or None."""
        if self.measure == "cosine":
            return Diagnosis("collapsed", stage, {"cosine": float(np.mean(self.random))}) if self.collapsed else None
        if self.collapsed and (self.answers is None or self.answers.kind == "score"):
            labels = self.answers.labels if self.answers else 0.0
            spread = float(np.std([*self.alike, *self.unlike, *self.random]))
            return Diagnosis("constant_score", stage, {"answer": f"{np.mean(self.alike):.3f}", "spread": spread, "labels": labels})
        return diagnose_answers(self.answers, stage) if self.answers else None


def make_report(
    log: TrainingLog,
    spread: Spread,
    *,
    title: str,
    messages: Sequence[str],
    facts: Sequence[tuple[str, object]],
    diagnoses: Sequence[Diagnosis] = (),
    language: Language = "en",
) -> str:
    """Return the page; what is a `Message` is said in the language."""
    t = partial(say, language=language)
    spoken = [[in_language(each, language) if isinstance(each, str) else each for each in row] for row in facts]
    parts = [table([t(TrainingWord.WHAT), t(TrainingWord.VALUE)], spoken)]
    parts.append("<ul>" + "".join(text(in_language(line, language), tag="li") for line in messages) + "</ul>")
    stages = sorted({entry.stage for entry in log.steps})
    named = {stage: t(TrainingWord.STAGE_NUMBER, number=stage + 1) for stage in stages}
    for found in diagnoses:
        where = f"{t(TrainingWord.STAGE_NUMBER, number=found.stage + 1)}: " if len(stages) > 1 else ""
        parts.append(text(where + found.to_text(language), style="warning"))
    losses = [_draw_line(named[stage], [(entry.step, entry.loss) for entry in log.steps if entry.stage == stage]) for stage in stages]
    chart = partial(line_chart, x_title=t(TrainingWord.STEP_OF_STAGE if len(stages) > 1 else TrainingWord.STEP), language=language)
    parts += [text(t(TrainingWord.LOSS), tag="h2"), chart(losses, title=t(TrainingWord.LOSS), y_title=t(TrainingWord.LOSS_AXIS))]
    if log.evaluations:
        curves = [
            _draw_line(named[stage], [(entry.step, entry.score) for entry in log.evaluations if entry.stage == stage]) for stage in stages
        ]
        metric = ", ".join(dict.fromkeys(entry.metric for entry in log.evaluations))
        drawn = chart(curves, title=t(TrainingWord.DEV_SCORE), y_title=t(TrainingWord.DEV_AXIS, metric=metric))
        rows = [(entry.stage + 1, entry.step, entry.metric, entry.score) for entry in log.evaluations]
        head = [t(word) for word in (TrainingWord.STAGE, TrainingWord.STEP, TrainingWord.METRIC, TrainingWord.SCORE)]
        parts += [text(t(TrainingWord.DEV_SCORE), tag="h2"), drawn, table(head, rows)]
    if log.finals:
        rows_of_tests = [
            (entry.stage + 1, entry.step, entry.test, name, value) for entry in log.finals for name, value in entry.scores.items()
        ]
        head = [t(word) for word in (TrainingWord.STAGE, TrainingWord.STEP, TrainingWord.FILE, TrainingWord.METRIC, TrainingWord.SCORE)]
        parts += [text(t(TrainingWord.TEST_SCORE), tag="h2"), table(head, rows_of_tests)]
    return page(in_language(title, language), [*parts, *_draw_spread(spread, language)], language=language)


def _draw_spread(spread: Spread, language: Language) -> list[str]:
    """Return how the vectors or scores of pairs lie, as a part of the page."""
    t = partial(say, language=language)
    groups = [Bars(t(TrainingWord.RANDOM_PAIRS), spread.random), Bars(t(TrainingWord.ALIKE), spread.alike)]
    groups += [Bars(t(TrainingWord.LESS_ALIKE), spread.unlike)] if spread.unlike else []
    plural, of_pairs, measure = _SPREADS[spread.measure]
    drawn = histogram(groups, title=t(of_pairs), x_title=t(measure), bounds=spread.bounds, language=language)
    return [text(t(plural), tag="h2"), drawn]


def _draw_line(name: str, points: Sequence[tuple[int, float]]) -> Line:
    return Line(name, [float(step) for step, _ in points], [value for _, value in points])


def find_middle(examples: Sequence[Example]) -> float:
    """Return the middle of the labels' range."""
    labels = [example.label for example in examples if example.label is not None]
    return (min(labels) + max(labels)) / 2 if labels else 0.0
