"""What a training did, as one HTML page: the loss, the dev score, and how the vectors lie.

In: the outcome of a training. Out: HTML text. The cosines of random pairs beside those of labelled ones show whether the space has spread
or collapsed; a collapse is said in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from munjang.report.charts import Bars, Line, histogram, line_chart
from munjang.report.page import page, table, text
from munjang.train.diagnoses import Diagnosis, diagnose_answers
from munjang.train.examples import Example
from munjang.train.log import Answers, TrainingLog
from munjang.types import Encoder
from munjang.vectors.similarity import similarity_pairwise

PAIRS = 500
"""Pairs whose cosines are drawn."""
WORDS = {
    "what": "what",
    "value": "value",
    "Loss": "Loss",
    "loss": "loss (mean of the step's batch)",
    "step": "step",
    "steps of a stage": "step (counted from the beginning of each stage)",
    "Dev score": "Dev score",
    "dev": "dev score ({metric})",
    "Test score": "Test score",
    "stage": "stage",
    "metric": "metric",
    "score": "score",
    "file": "file",
    "random pairs": "random pairs",
    "alike": "alike",
    "less alike": "less alike",
    "Cosines": "Cosines of pairs",
    "Scores": "Scores of pairs",
    "cosine of a pair": "cosine of a pair",
    "score of a pair": "score of a pair",
    "share of pairs": "share of pairs",
}
"""Every word of the page that is not the training's own; what is wrong with a training is in `diagnoses.TEXTS`."""
COLLAPSED = 0.9
"""Mean cosine of random pairs from which the space counts as collapsed."""


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


def measure_spread(encoder: Encoder, examples: Sequence[Example], *, seed: int) -> Spread:
    """Return the cosines of a sample of rows, and of first texts with texts of other rows."""
    random = np.random.default_rng(seed)
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    firsts, seconds = [example.texts[0] for example in chosen], [example.texts[-1] for example in chosen]
    vectors = encoder.encode([*firsts, *seconds])
    left, right = vectors[: len(chosen)], vectors[len(chosen) :]
    cosines = similarity_pairwise(left, right, metric="cosine")
    # every row's second text with the first text of the row before: a partner by chance
    by_chance = similarity_pairwise(np.roll(left, 1, axis=0), right, metric="cosine") if len(chosen) > 1 else cosines[:0]
    middle = middle_of(chosen)
    if len(chosen[0].texts) == 1:  # a text alone has no partner
        return Spread((), (), tuple(float(value) for value in by_chance))
    high = [example.label is None or example.label >= middle for example in chosen]
    alike = tuple(float(value) for value, is_high in zip(cosines, high, strict=True) if is_high)
    unlike = tuple(float(value) for value, is_high in zip(cosines, high, strict=True) if not is_high)
    return Spread(alike, unlike, tuple(float(value) for value in by_chance))


def training_report(
    log: TrainingLog,
    spread: Spread,
    *,
    title: str,
    said: Sequence[str],
    facts: Sequence[tuple[str, object]],
    diagnoses: Sequence[Diagnosis] = (),
) -> str:
    """Return the page."""
    words = WORDS
    parts = [table([words["what"], words["value"]], facts)]
    parts.append("<ul>" + "".join(text(line, tag="li") for line in said) + "</ul>")
    stages = sorted({entry.stage for entry in log.steps})
    for found in diagnoses:
        where = f"{words['stage']} {found.stage + 1}: " if len(stages) > 1 else ""
        parts.append(text(f"{where}{found}", style="warning"))
    step = words["steps of a stage"] if len(stages) > 1 else words["step"]
    losses = [_line(words, stage, [(entry.step, entry.loss) for entry in log.steps if entry.stage == stage]) for stage in stages]
    parts += [text(words["Loss"], tag="h2"), line_chart(losses, title=words["Loss"], x_title=step, y_title=words["loss"])]
    if log.evaluations:
        curves = [_line(words, stage, [(entry.step, entry.score) for entry in log.evaluations if entry.stage == stage]) for stage in stages]
        metric = ", ".join(dict.fromkeys(entry.metric for entry in log.evaluations))
        drawn = line_chart(curves, title=words["Dev score"], x_title=step, y_title=words["dev"].format(metric=metric))
        rows = [(entry.stage + 1, entry.step, entry.metric, entry.score) for entry in log.evaluations]
        head = [words[name] for name in ("stage", "step", "metric", "score")]
        parts += [text(words["Dev score"], tag="h2"), drawn, table(head, rows)]
    if log.finals:
        rows_of_tests = [
            (entry.stage + 1, entry.step, entry.test, name, value) for entry in log.finals for name, value in entry.scores.items()
        ]
        head = [words[name] for name in ("stage", "step", "file", "metric", "score")]
        parts += [text(words["Test score"], tag="h2"), table(head, rows_of_tests)]
    return page(title, [*parts, *_spread(words, spread)])


def _spread(words: Mapping[str, str], spread: Spread) -> list[str]:
    """Return how the vectors or scores of pairs lie, as a part of the page."""
    groups = [Bars(words["random pairs"], spread.random), Bars(words["alike"], spread.alike)]
    groups += [Bars(words["less alike"], spread.unlike)] if spread.unlike else []
    heading = words["Cosines" if spread.measure == "cosine" else "Scores"]
    x_title = words["cosine of a pair" if spread.measure == "cosine" else "score of a pair"]
    drawn = histogram(groups, title=heading, x_title=x_title, y_title=words["share of pairs"], bounds=spread.bounds)
    return [text(heading, tag="h2"), drawn]


def _line(words: Mapping[str, str], stage: int, points: Sequence[tuple[int, float]]) -> Line:
    name = f"{words['stage']} {stage + 1}"
    return Line(name, [float(step) for step, _ in points], [value for _, value in points])


def middle_of(examples: Sequence[Example]) -> float:
    """Return the middle of the labels' range."""
    labels = [example.label for example in examples if example.label is not None]
    return (min(labels) + max(labels)) / 2 if labels else 0.0
