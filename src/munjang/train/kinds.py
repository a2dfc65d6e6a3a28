"""What the trainer does differently for an encoder of sentences and for a cross-encoder: making a stage ready, and the dev score."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from munjang.train.build import Trainable
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.cross_dev import read_cross_dev
from munjang.train.cross_stage import prepare_cross_stage
from munjang.train.dev import Scores, read_dev
from munjang.train.examples import DataSource
from munjang.train.recipe import StageRecipe
from munjang.train.stage import Stage, prepare_stage

Dev: TypeAlias = Callable[[], tuple[str, Scores]]
"""Measures the model as it is now: the name of the deciding number, and all of them."""


def prepare(recipe: StageRecipe, model: Trainable, *, number: int, seed: int) -> Stage:
    """Read, tokenise and plan one stage for this model."""
    if isinstance(model, TrainableCrossEncoder):
        return prepare_cross_stage(recipe, model, number=number, seed=seed)
    return prepare_stage(recipe, model, number=number, seed=seed)


def dev_of(source: DataSource, model: Trainable, *, seed: int) -> Dev:
    """Read a dev file that fits this model."""
    if isinstance(model, TrainableCrossEncoder):
        return partial(read_cross_dev(source, model.labels, seed=seed).score, model)
    return partial(read_dev(source, seed=seed).score, model)
