"""What a model is trained to do; one file an objective."""

from __future__ import annotations

from munjang.train.objectives.base import LabelKind, Objective
from munjang.train.objectives.cached import cached_step
from munjang.train.objectives.choose import Choice, DataShape, choose_objective
from munjang.train.objectives.registry import OBJECTIVES, SCORE_LOSSES, make_objective, make_score_loss
from munjang.train.objectives.scores import ScoreLoss

__all__ = [
    "OBJECTIVES",
    "SCORE_LOSSES",
    "Choice",
    "DataShape",
    "LabelKind",
    "Objective",
    "ScoreLoss",
    "cached_step",
    "choose_objective",
    "make_objective",
    "make_score_loss",
]
