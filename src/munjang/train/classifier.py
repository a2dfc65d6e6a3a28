"""The classifier that a stage trains beside its encoder, as long as its head is there.

In: a stage. Out: a `Classifier` for each classification objective: two columns of vectors → names of classes. The saved model has no head,
so a stage's classifier can only be measured while the stage runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from munjang.evaluate.nli import labels_of
from munjang.train.objectives.classification import Classification
from munjang.train.stage import Stage
from munjang.types import Vectors


@dataclass(frozen=True)
class Classifier:
    """A head in training, and the names of its outputs in order."""

    head: Classification
    classes: tuple[str, ...]

    def predict(self, u_ND: Vectors, v_ND: Vectors) -> list[str]:
        """Return the most likely class of each pair of vectors."""
        weight = self.head.head.weight
        with torch.no_grad():
            logits_NK = self.head.logits([torch.from_numpy(side).to(weight) for side in (u_ND, v_ND)])
        return labels_of(logits_NK.cpu().numpy(), self.classes)


def classifiers_of(stage: Stage) -> tuple[Classifier, ...]:
    """Return the classifiers of a stage, one for each classification objective."""
    found: dict[int, Classifier] = {}
    for data in stage.data:
        objective = stage.objectives[data.objective]
        if isinstance(objective, Classification):
            found.setdefault(data.objective, Classifier(objective, data.examples.classes))
    return tuple(found.values())
