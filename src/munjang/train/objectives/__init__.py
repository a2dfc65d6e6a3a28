"""What a model is trained to do; one file an objective."""

from __future__ import annotations

from munjang.train.objectives.base import LabelKind, Objective
from munjang.train.objectives.cached import cached_step
from munjang.train.objectives.choose import Choice, DataShape, choose_objective
from munjang.train.objectives.choose_score import choose_score_loss
from munjang.train.objectives.registry import OBJECTIVES, SCORE_LOSSES, make_objective, make_score_loss
from munjang.train.objectives.score_objective import ScoreObjective
from munjang.train.objectives.scores import ScoreLoss

__all__ = [
    "OBJECTIVES",
    "SCORE_LOSSES",
    "Choice",
    "DataShape",
    "LabelKind",
    "Objective",
    "ScoreLoss",
    "ScoreObjective",
    "cached_step",
    "choose_objective",
    "choose_score_loss",
    "make_objective",
    "make_score_loss",
]
