"""What a model is trained to do; one file an objective."""

from __future__ import annotations

from munjang.train.objectives.base import LabelKind, Objective
from munjang.train.objectives.cached import run_cached_step
from munjang.train.objectives.registry import (
    OBJECTIVES,
    SCORE_LOSSES,
    DataShape,
    ObjectiveChoice,
    choose_objective,
    choose_score_loss,
    make_objective,
    make_score_loss,
)
from munjang.train.objectives.score_losses import ScoreLoss, ScoreObjective

__all__ = [
    "OBJECTIVES",
    "SCORE_LOSSES",
    "DataShape",
    "LabelKind",
    "Objective",
    "ObjectiveChoice",
    "ScoreLoss",
    "ScoreObjective",
    "choose_objective",
    "choose_score_loss",
    "make_objective",
    "make_score_loss",
    "run_cached_step",
]
