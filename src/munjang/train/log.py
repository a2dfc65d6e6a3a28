"""What a training did: the loss of each step and each evaluation. No clock in it, so two equal runs have equal logs, byte for byte."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from munjang.wording import brief_repr


@dataclass(frozen=True)
class StepEntry:
    """One optimiser step."""

    stage: int
    step: int
    loss: float
    rate: float


@brief_repr
@dataclass(frozen=True)
class Answers:
    """How much a model's answers to the rows of a file differ, and how much the labels do.

    Of scores and cosines `spread` and `labels` are standard deviations and `answer` is the mean; of classes they are the shares of rows
    outside the most frequent class, `answer` is the one that the model gives most, and `right` the share of rows that have it.
    """

    kind: Literal["score", "cosine", "class"]
    rows: int
    spread: float
    labels: float
    answer: str
    right: float = 0.0


@brief_repr
@dataclass(frozen=True)
class DevEntry:
    """One evaluation; `metric` is the score that decides what is best. What the model answered is None where rows have no labels."""

    stage: int
    step: int
    metric: str
    score: float
    scores: dict[str, float] = field(default_factory=dict)
    answers: Answers | None = None


@brief_repr
@dataclass(frozen=True)
class FinalEntry:
    """What the weights that a stage kept, those of `step`, score on its test file `test`."""

    stage: int
    step: int
    test: str
    metric: str
    scores: dict[str, float]


@brief_repr
@dataclass
class TrainingLog:
    """Steps, evaluations and test scores in order."""

    steps: list[StepEntry] = field(default_factory=list)
    evaluations: list[DevEntry] = field(default_factory=list)
    finals: list[FinalEntry] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values; numbers survive the way through JSON exactly."""
        return {
            "steps": [asdict(entry) for entry in self.steps],
            "evaluations": [asdict(entry) for entry in self.evaluations],
            "finals": [asdict(entry) for entry in self.finals],
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainingLog:
        """Return what `to_json` described."""
        steps = [StepEntry(**entry) for entry in values["steps"]]
        finals = [FinalEntry(**entry) for entry in values.get("finals", [])]  # snapshots of an older version have none
        return cls(steps, [_read_evaluation(entry) for entry in values["evaluations"]], finals)

    def write(self, path: Path) -> None:
        """Write one JSON line per step, evaluation and test score."""
        entries: list[StepEntry | DevEntry | FinalEntry] = [*self.steps, *self.evaluations, *self.finals]
        lines = [json.dumps(asdict(entry)) for entry in entries]
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _read_evaluation(values: dict[str, Any]) -> DevEntry:
    answers = values.get("answers")  # snapshots of an older version have none
    return DevEntry(**{**values, "answers": None if answers is None else Answers(**answers)})
