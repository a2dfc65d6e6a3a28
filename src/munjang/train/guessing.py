"""The loss that a stage has before anything is learnt: that of a model that gives every row the best constant answer.

In: a stage made ready. Out: a `Guessing`, or None where the objective has no such number. K classes that are equally frequent give ln K;
in-batch negatives over N candidates give ln N. The mean is over the batches of an epoch, so data sets weigh what they weigh in training.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from munjang.train.diagnoses import Guessing
from munjang.train.objectives import ScoreObjective
from munjang.train.objectives.classification import Classification
from munjang.train.objectives.in_batch import InBatch
from munjang.train.objectives.scores import Bce
from munjang.train.stage import Stage, StageData


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


def guessing_of(stage: Stage) -> Guessing | None:
    """Return what guessing costs in a stage; None where one of its objectives does not say."""
    chances = [_chance(stage, data) for data in stage.data]
    known = [chance for chance in chances if chance is not None]
    if len(known) < len(chances):
        return None
    batches = stage.epoch(0)
    loss = math.fsum(known[batch.data].of(len(batch.rows)) for batch in batches) / len(batches)
    lowest = math.fsum(known[batch.data].lowest for batch in batches) / len(batches)
    choices = max(1, round(math.exp(loss)))
    off = abs(math.log(choices) - loss)
    return Guessing(loss, lowest, "" if choices == 1 or off > 0.02 * loss else f" {'=' if off < 0.001 else '≈'} ln {choices}")


def _chance(stage: Stage, data: StageData) -> _Chance | None:
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
        return _Chance(_binary_entropy(float(labels.mean())), float(np.mean([_binary_entropy(label) for label in labels.tolist()])))
    return None


def entropy(counts: Sequence[int]) -> float:
    """Return the cross-entropy of always answering with the classes' frequencies.

    >>> math.isclose(entropy([5, 5, 5]), math.log(3)), entropy([7])
    (True, 0.0)
    """
    total = sum(counts)
    return -math.fsum(count / total * math.log(count / total) for count in counts) + 0.0


def _binary_entropy(share: float) -> float:
    return -math.fsum(part * math.log(part) for part in (share, 1 - share) if part > 0) + 0.0
