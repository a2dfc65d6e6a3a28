"""What the trainer does differently for an encoder of sentences and for a cross-encoder: making a stage ready and measuring it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from munjang.train.build import Trainable
from munjang.train.classifier import classifiers_of
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.cross_dev import read_cross_dev
from munjang.train.cross_stage import prepare_cross_stage
from munjang.train.dev import Evaluation, Role, read_dev
from munjang.train.distill.lessons import prepare_lessons
from munjang.train.examples import DataSource
from munjang.train.recipe import StageRecipe
from munjang.train.stage import Stage, prepare_stage

Dev: TypeAlias = Callable[[], Evaluation]
"""Measures the model as it is now."""


@dataclass(frozen=True)
class Measures:
    """What a stage is measured by: `dev` on the way, `test` once, with the weights that are kept."""

    dev: Dev | None = None
    test: Dev | None = None


def prepare(recipe: StageRecipe, model: Trainable, *, number: int, seed: int, folder: Path, said: Callable[[str], None]) -> Stage:
    """Read, tokenise and plan one stage for this model; a teacher's vectors are kept in `folder`, and `said` hears how that goes."""
    if isinstance(model, TrainableCrossEncoder):
        return prepare_cross_stage(recipe, model, number=number, seed=seed)
    lessons = partial(prepare_lessons, student=model, folder=folder / "teacher", said=said)
    return prepare_stage(recipe, model, number=number, seed=seed, lessons=lessons)


def measures_of(stage: Stage, model: Trainable) -> Measures:
    """Read the stage's dev and test files; one that does not fit this model is refused."""
    recipe = stage.recipe
    dev = None if recipe.dev is None else _measure(recipe.dev, "dev", stage, model)
    test = None if recipe.test is None else _measure(recipe.test, "test", stage, model)
    return Measures(dev, test)


def _measure(source: DataSource, role: Role, stage: Stage, model: Trainable) -> Dev:
    if isinstance(model, TrainableCrossEncoder):
        return partial(read_cross_dev(source, model.labels, seed=stage.seed, role=role).score, model)
    return partial(read_dev(source, seed=stage.seed, classifiers=classifiers_of(stage), role=role).score, model)
