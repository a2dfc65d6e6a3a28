"""What distillation changed: the same measures of the teacher, of the student before, and of the student after.

In: the teacher, the student's two states as Encoders, dev files. Out: `Measure`s in order: the mean squared error against the teacher's
vector of the source (on both sides of parallel text), the accuracy of finding translations both ways, Spearman on STS files. Without
parallel dev pairs the error is measured on a sample of what was learnt from, and its name says so.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from munjang.evaluate.mse import score_mse
from munjang.evaluate.sts import encode_sides, score_sts
from munjang.evaluate.translation import score_translation
from munjang.train.distill.lessons import Target
from munjang.train.examples import Example, ExampleSet
from munjang.types import Encoder

SAMPLE = 1_000
"""Rows of the training data that the error is measured on where there are no dev pairs."""


@dataclass(frozen=True)
class Measure:
    """One number of three encoders; the teacher's error against itself is none."""

    name: str
    teacher: float | None
    before: float
    after: float


@dataclass(frozen=True)
class Trio:
    """Who is measured, and how the teacher's vectors become the student's targets."""

    teacher: Encoder
    before: Encoder
    after: Encoder
    target: Target


def measure_distillation(
    trio: Trio, *, learnt: ExampleSet, parallel: ExampleSet | None, sts: Sequence[ExampleSet], seed: int
) -> list[Measure]:
    """Return every measure that the files at hand allow."""
    rows = list(parallel.examples) if parallel else _sample(learnt, seed)
    made = _errors(trio, rows, on=parallel.source if parallel else f"{len(rows):,} rows of {learnt.source}")
    if parallel is not None:
        made += _translation(trio, parallel)
    return made + [_spearman(trio, found) for found in sts]


def _errors(trio: Trio, rows: Sequence[Example], *, on: str) -> list[Measure]:
    taught = trio.target.of(trio.teacher.encode([row.texts[0] for row in rows]))
    columns = min(len(row.texts) for row in rows)
    names = ("source", "translation") if columns > 1 else ("text",)
    made = []
    for column, name in enumerate(names):
        texts = [row.texts[column] for row in rows]
        before, after = (score_mse(taught, student.encode(texts)) for student in (trio.before, trio.after))
        made.append(Measure(f"MSE, {name}, {on}", None, before, after))
    return made


def _translation(trio: Trio, parallel: ExampleSet) -> list[Measure]:
    source, target = ([row.texts[column] for row in parallel.examples] for column in (0, 1))
    found = []
    for encoder in (trio.teacher, trio.before, trio.after):
        a, b = encode_sides(encoder, source, target)
        found.append(score_translation(a, b, source=source, target=target, resamples=0))
    there = [one.src2trg_accuracy for one in found]
    back = [one.trg2src_accuracy for one in found]
    return [
        Measure(f"accuracy, source → translation, {parallel.source}", *there),
        Measure(f"accuracy, translation → source, {parallel.source}", *back),
    ]


def _spearman(trio: Trio, sts: ExampleSet) -> Measure:
    left, right = ([row.texts[column] for row in sts.examples] for column in (0, 1))
    gold = [row.label or 0.0 for row in sts.examples]
    found = []
    for encoder in (trio.teacher, trio.before, trio.after):
        a, b = encode_sides(encoder, left, right)
        found.append(score_sts(a, b, gold, resamples=0, worst=0).scores["spearman_cosine"])
    return Measure(f"Spearman, {sts.source}", *found)


def _sample(learnt: ExampleSet, seed: int) -> list[Example]:
    count = min(SAMPLE, len(learnt))
    return [learnt.examples[place] for place in sorted(random.Random(seed).sample(range(len(learnt)), count))]  # noqa: S311
