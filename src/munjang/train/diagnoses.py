"""What can be seen of a training that goes wrong: one answer for every row, a loss that guessing has too, a dev score that falls.

In: a training's log, and the loss of guessing (`guessing.py`). Out: `Diagnosis` values, each with what was seen and what to try. The bounds
are set so that a healthy training says nothing: what varies little must vary a hundredth of what the labels do, a fall must be larger than
the noise of its dev file. Every sentence stands in the reports' table of words, by the diagnosis's kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, WordTable, say
from munjang.train.log import Answers, DevEntry, TrainingLog
from munjang.train.objectives.contrastive import InBatch
from munjang.train.objectives.labelled import Classification
from munjang.train.objectives.score_losses import Bce, ScoreObjective
from munjang.train.stage import Stage, StageData
from munjang.wording import Language, brief_repr

DiagnosisKind: TypeAlias = Literal["constant_score", "constant_class", "guessing", "falling_dev", "collapsed"]

LEAST_ROWS = 20
"""Rows of a dev file from which its answers are judged; a few rows may agree by chance."""
CONSTANT = {"score": 0.02, "cosine": 0.01}
"""The scores' standard deviation as a share of the labels', below which they are one answer. A plain BERT's cosines are near each other."""
ONE_CLASS = 0.01
"""The share of rows with another answer than the most frequent one, below which a classifier gives one answer …"""
VARIED_CLASSES = 0.05
"""… where at least this share of the labels is another than the most frequent one."""
JUDGED_FROM = 0.75
"""The share of a stage's steps from which its loss is judged: models that start from nothing may learn late."""
LEAST_STEPS = 20
"""Steps of a stage from which its loss is judged."""
LEARNT = 0.03
"""The share of the way from guessing to the lowest loss that a model must have gone to count as having learnt something."""
LEAST_FALL = 0.02
"""A dev score must fall by this, and by half of 1/√rows, about the error of its measurement."""

TEXTS: dict[DiagnosisKind, tuple[WordTable, WordTable]] = {
    "constant_score": (TrainingWord.CONSTANT_SCORE, TrainingWord.CONSTANT_SCORE_ADVICE),
    "constant_class": (TrainingWord.CONSTANT_CLASS, TrainingWord.CONSTANT_CLASS_ADVICE),
    "guessing": (TrainingWord.GUESSING, TrainingWord.GUESSING_ADVICE),
    "falling_dev": (TrainingWord.FALLING_DEV, TrainingWord.FALLING_DEV_ADVICE),
    "collapsed": (TrainingWord.COLLAPSED, TrainingWord.COLLAPSED_ADVICE),
}
"""What was seen, and what to try, by kind."""


@dataclass(frozen=True)
class Guessing:
    """The loss of a model that gives every row the best constant answer, the lowest loss there can be, and why it is that number."""

    loss: float
    lowest: float = 0.0
    formula: str = ""


@brief_repr
@dataclass(frozen=True)
class Diagnosis:
    """Something that is wrong with a training: its kind, the stage it was seen in (from 0), and the numbers of its sentence."""

    kind: DiagnosisKind
    stage: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.to_text("en")

    def to_text(self, language: Language) -> str:
        """Return what was seen and what to try."""
        seen, advice = TEXTS[self.kind]
        return f"{say(seen, language, **self.facts)} {say(advice, language)}"

    def to_json(self) -> dict[str, Any]:
        """Return it for machines; stages are counted from 1, as in every message."""
        seen, advice = TEXTS[self.kind]
        return {"kind": self.kind, "stage": self.stage + 1, "seen": say(seen, **self.facts), "advice": say(advice)}


def diagnose(log: TrainingLog, stage: int, *, guessing: Guessing | None, done: float = 1.0) -> list[Diagnosis]:
    """Return what is wrong with a stage of which the share `done` is behind.

    On the way one constant evaluation may pass, so two are waited for; a dev score may recover until the middle, a loss until later.
    """
    evaluations = [entry for entry in log.evaluations if entry.stage == stage]
    trained = [entry for entry in evaluations if entry.step > 0]
    waited = trained[-1:] if done >= 1 else trained[-2:] if len(trained) > 1 else []
    constant = [diagnose_answers(entry.answers, stage) for entry in waited if entry.answers is not None]
    found = constant[-1:] if constant and all(constant) else []
    losses = [entry.loss for entry in log.steps if entry.stage == stage]
    found += [diagnose_loss(losses, guessing, stage)] if done >= JUDGED_FROM else []
    found += [diagnose_dev(evaluations, stage)] if done >= 0.5 else []
    return [diagnosis for diagnosis in found if diagnosis is not None]


def diagnose_answers(answers: Answers, stage: int) -> Diagnosis | None:
    """Return whether a model gives one answer to rows whose labels differ."""
    if answers.rows < LEAST_ROWS:
        return None
    if answers.kind == "class":
        if answers.spread >= ONE_CLASS or answers.labels < VARIED_CLASSES:
            return None
        return Diagnosis("constant_class", stage, {"share": 1 - answers.spread, "answer": answers.answer, "right": answers.right})
    if answers.labels == 0 or answers.spread >= CONSTANT[answers.kind] * answers.labels:
        return None
    return Diagnosis("constant_score", stage, {"answer": answers.answer, "spread": answers.spread, "labels": answers.labels})


def diagnose_loss(losses: Sequence[float], guessing: Guessing | None, stage: int) -> Diagnosis | None:
    """Return whether the second half of a stage's losses is no better than guessing."""
    if guessing is None or len(losses) < LEAST_STEPS:
        return None
    late = math.fsum(losses[len(losses) // 2 :]) / len(losses[len(losses) // 2 :])
    room = guessing.loss - guessing.lowest
    if room <= 0 or guessing.loss - late >= LEARNT * room:
        return None
    return Diagnosis("guessing", stage, {"loss": late, "chance": guessing.loss, "formula": guessing.formula})


def diagnose_dev(evaluations: Sequence[DevEntry], stage: int) -> Diagnosis | None:
    """Return whether the dev score was best before training, or at the first evaluation, and fell from there."""
    scores = [entry.score for entry in evaluations]
    if len(scores) < 2:
        return None
    start = max((0, 1), key=scores.__getitem__)
    later = scores[start + 1 :]
    # one worse evaluation is enough against the model as it came, not against a first one of the same training
    if len(later) < (1 if evaluations[start].step == 0 else 3) or max(later) > scores[start]:
        return None
    answers = evaluations[start].answers
    rows = answers.rows if answers is not None else 0
    noise = max(LEAST_FALL, 0.5 / math.sqrt(rows)) if rows else 2 * LEAST_FALL
    steady = all(after <= before for before, after in zip(scores[start:], later, strict=False))
    clear = max(later) <= scores[start] - noise
    if scores[start] - scores[-1] < noise or not (steady or clear):
        return None
    best, last = evaluations[start], evaluations[-1]
    before = Message(TrainingWord.AT_STEP, step=best.step) if best.step else Message(TrainingWord.BEFORE_TRAINING)
    return Diagnosis(
        "falling_dev", stage, {"metric": best.metric, "best": best.score, "before": before, "last": last.score, "step": last.step}
    )


def describe_scores(scores: ArrayLike, labels: ArrayLike, *, kind: Literal["score", "cosine"]) -> Answers:
    """Return how much scores differ, and how much their labels do."""
    found, wanted = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    return Answers(kind, len(found), float(found.std()), float(wanted.std()), f"{found.mean():.3f}")


def describe_classes(predicted: Sequence[str], gold: Sequence[str]) -> Answers:
    """Return how much predicted classes differ, and how much the right ones do."""
    (answer, count), (_, most) = Counter(predicted).most_common(1)[0], Counter(gold).most_common(1)[0]
    rows = len(gold)
    return Answers("class", rows, 1 - count / rows, 1 - most / rows, answer, gold.count(answer) / rows)


@dataclass(frozen=True)
class _Chance:
    """A data set's loss of guessing for a batch of some rows: `fixed`, or, among its rows, ln(rows × documents)."""

    fixed: float = 0.0
    lowest: float = 0.0
    candidates: int = 0
    both_ways: bool = False

    def of(self, rows: int) -> float:
        if not self.candidates:
            return self.fixed
        forward = math.log(rows * self.candidates)
        return (forward + math.log(rows)) / 2 if self.both_ways else forward


def find_guessing_loss(stage: Stage) -> Guessing | None:
    """Return what guessing costs in a stage; None where one of its objectives does not say."""
    chances = [_find_chance(stage, data) for data in stage.data]
    known = [chance for chance in chances if chance is not None]
    if len(known) < len(chances):
        return None
    batches = stage.epoch(0)
    loss = math.fsum(known[batch.data].of(len(batch.rows)) for batch in batches) / len(batches)
    lowest = math.fsum(known[batch.data].lowest for batch in batches) / len(batches)
    choices = max(1, round(math.exp(loss)))
    off = abs(math.log(choices) - loss)
    return Guessing(loss, lowest, "" if choices == 1 or off > 0.02 * loss else f" {'=' if off < 0.001 else '≈'} ln {choices}")


def _find_chance(stage: Stage, data: StageData) -> _Chance | None:
    objective, examples = stage.objectives[data.objective], data.examples.examples
    if isinstance(objective, InBatch):
        return _Chance(candidates=data.examples.columns - 1, both_ways=objective.settings.symmetric)
    if isinstance(objective, Classification) and isinstance(data.labels, Tensor):
        return _Chance(entropy(list(Counter(data.labels.tolist()).values())))
    if not isinstance(objective, ScoreObjective):
        return None
    if objective.name == "cross_entropy" and isinstance(data.labels, Tensor):
        return _Chance(entropy(list(Counter(data.labels.tolist()).values())))
    if objective.name == "multiple_negatives":
        return _Chance(math.fsum(math.log(len(example.texts) - 1) for example in examples) / len(examples))
    if isinstance(objective.score_loss, Bce) and objective.score_loss.positive_weight == 1 and isinstance(data.labels, Tensor):
        labels = data.labels.double().numpy()
        # soft labels cannot be met exactly, so the lowest loss is not 0
        return _Chance(
            _measure_binary_entropy(float(labels.mean())), float(np.mean([_measure_binary_entropy(label) for label in labels.tolist()]))
        )
    return None


def entropy(counts: Sequence[int]) -> float:
    """Return the cross-entropy of always answering with the classes' frequencies.

    >>> math.isclose(entropy([5, 5, 5]), math.log(3)), entropy([7])
    (True, 0.0)
    """
    total = sum(counts)
    return -math.fsum(count / total * math.log(count / total) for count in counts) + 0.0


def _measure_binary_entropy(share: float) -> float:
    return -math.fsum(part * math.log(part) for part in (share, 1 - share) if part > 0) + 0.0
