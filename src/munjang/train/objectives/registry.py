"""The closed tables of objectives and score losses: a name and a recipe's settings → the thing itself. Nothing is imported by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from munjang.errors import UsageError, shown
from munjang.train.card import LOSSES
from munjang.train.objectives.angle import Angle
from munjang.train.objectives.base import Objective
from munjang.train.objectives.classification import Classification
from munjang.train.objectives.contrastive import Contrastive, OnlineContrastive
from munjang.train.objectives.cosent import Cosent
from munjang.train.objectives.distillation import Distillation
from munjang.train.objectives.in_batch import InBatch
from munjang.train.objectives.listwise import LambdaLoss, ListNet, RankNet
from munjang.train.objectives.marginmse import MarginMse
from munjang.train.objectives.matryoshka import Matryoshka
from munjang.train.objectives.regression import Regression
from munjang.train.objectives.scores import Bce, CrossEntropy, Mse, MultipleNegatives, ScoreLoss, ScoreMarginMse
from munjang.train.objectives.settings import nearest, read_settings
from munjang.train.objectives.triplet import Triplet

_OBJECTIVE_CLASSES: tuple[type[Objective], ...] = (
    Classification,
    Regression,
    Triplet,
    InBatch,
    Cosent,
    Angle,
    Contrastive,
    OnlineContrastive,
    Distillation,
    MarginMse,
    Matryoshka,
)
OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in _OBJECTIVE_CLASSES}

_SCORE_LOSS_CLASSES: tuple[type[ScoreLoss], ...] = (Mse, Bce, CrossEntropy, ScoreMarginMse, MultipleNegatives, ListNet, LambdaLoss, RankNet)
SCORE_LOSSES: dict[str, type[ScoreLoss]] = {kind.name: kind for kind in _SCORE_LOSS_CLASSES}


def make_objective(name: str, settings: Mapping[str, object], *, dimension: int, num_labels: int | None = None) -> Objective:
    """Return the objective called `name`; an unknown name or setting is a UsageError that names the nearest known one.

    >>> make_objective("triplet", {"margin": 2}, dimension=384).describe()
    'triplets, euclidean distance, margin 2'
    """
    if name not in OBJECTIVES:
        raise UsageError(f"unknown objective {shown(name)}{nearest_objective(name, OBJECTIVES)}")
    return OBJECTIVES[name].build(settings, dimension=dimension, num_labels=num_labels)


def nearest_objective(name: str, known: Iterable[str]) -> str:
    """Return the tail of a message that points at the objective that was meant; sentence-transformers' names are understood.

    >>> nearest_objective("MultipleNegativesRankingLoss", OBJECTIVES)
    '\\n  did you mean in_batch?'
    """
    names = list(known)
    return nearest(name, names, elsewhere={LOSSES[ours]: ours for ours in reversed(names) if ours in LOSSES})


def make_score_loss(name: str, settings: Mapping[str, object]) -> ScoreLoss:
    """Return the cross-encoder loss called `name`; an unknown name or setting is a UsageError that names the nearest known one."""
    if name not in SCORE_LOSSES:
        raise UsageError(f"unknown loss {shown(name)}{nearest_objective(name, SCORE_LOSSES)}")
    return read_settings(SCORE_LOSSES[name], settings, where=f"loss {name!r}")
