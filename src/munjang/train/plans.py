"""Trainings without a recipe file: what `munjang adapt` and `munjang distill` are asked for, and the recipe of one stage that does it.

A plan names what its command adds to a recipe; everything else is a key of `StageRecipe`, `ModelRecipe` and their like, used as it is.
Needs no torch, so that commands can show their options without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from munjang.errors import UsageError
from munjang.options import Option, default_of
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.recipe import ModelRecipe, Recipe, TextMethod, TopKeys, make_stage
from munjang.types import DEFAULT_DEVICE, Device
from munjang.wording import brief_repr

LEARNING_RATES: dict[TextMethod, float] = {"mlm": 5e-5, "tsdae": 3e-5, "simcse": 1e-5}
BATCH_SIZES: dict[TextMethod, int] = {"mlm": 16, "tsdae": 8, "simcse": 64}
"""Where the plan says none; those of the papers, but for mlm's, which is fine-tuning's usual one."""
DROPOUTS: dict[TextMethod, float] = {"simcse": 0.1}
"""Where the plan says none and the model's own will not do: two passes of simcse differ by dropout alone."""

DISTILL_STAGE: dict[str, object] = {"batch_size": 64, "learning_rate": 1e-4}
STUDENT: dict[str, object] = {"dropout": 0.0, "prompts": False}
"""A distillation's own defaults of a stage and of the model: the student learns from texts without prompts."""


@brief_repr
@dataclass(frozen=True)
class AdaptPlan:
    """What to learn from which text, and where the model goes. The first of `dev` decides which weights are kept, all are measured."""

    files: tuple[DataSource, ...]
    output: str
    model: ModelRecipe
    method: Annotated[
        TextMethod,
        Option("mlm: predict hidden words; tsdae: reconstruct texts from their vectors; simcse: contrast each text with the others."),
    ] = "tsdae"
    stage: Mapping[str, object] = field(default_factory=dict)
    """Keys of a recipe's stage, such as settings, epochs and steps; batch size and learning rate are the method's own without."""
    dev: tuple[DataSource, ...] = ()
    seed: int = default_of(TopKeys, "seed")
    checkpoint_every: int = default_of(TopKeys, "checkpoint_every")
    device: Device = DEFAULT_DEVICE

    def make_recipe(self) -> Recipe:
        """Return the recipe of one stage that does it."""
        named = {"name": self.method, "objective": self.method, "dev": self.dev[0] if self.dev else None}
        stage = make_stage(
            self.stage, data=self.files, batch_size=BATCH_SIZES[self.method], learning_rate=LEARNING_RATES[self.method], **named
        )
        model = replace(self.model, dropout=DROPOUTS.get(self.method)) if self.model.dropout is None else self.model
        return Recipe(
            output=self.output, model=model, stages=(stage,), seed=self.seed, checkpoint_every=self.checkpoint_every, device=self.device
        )


@brief_repr
@dataclass(frozen=True)
class DistillOptions:
    """A teacher, a student, what to learn from, and what to measure on. The first file of `dev_sts` decides which weights are kept.

    The student learns from texts without prompts: a `ModelRecipe` with `prompts = False` forgets those of its base.
    """

    teacher: TeacherRecipe
    student: ModelRecipe
    output: str
    data: tuple[DataSource, ...]
    dev_sts: tuple[DataSource, ...] = ()
    dev_parallel: DataSource | None = None
    projection: Annotated[
        Literal["pca", "dense"], Option("For a wider teacher: project its vectors, or widen the student with a layer.")
    ] = "pca"
    stage: Mapping[str, object] = field(default_factory=dict)
    """Keys of a recipe's stage, such as epochs, steps and batch_size."""
    seed: int = default_of(TopKeys, "seed")
    checkpoint_every: int = default_of(TopKeys, "checkpoint_every")
    device: Device = DEFAULT_DEVICE


def plan_distillation(options: DistillOptions) -> Recipe:
    """Return the recipe; the folders of teacher and student are looked at for their dimensions."""
    if not options.data:
        raise UsageError("nothing to learn from, expected --parallel or --texts")
    dev = options.dev_sts[0] if options.dev_sts else options.dev_parallel
    named = {"name": "distillation", "objective": "distillation", **DISTILL_STAGE}
    stage = make_stage(options.stage, data=options.data, dev=dev, teacher=options.teacher, **named)
    model = _plan_student(options)
    return Recipe(
        output=options.output,
        model=model,
        stages=(stage,),
        seed=options.seed,
        checkpoint_every=options.checkpoint_every,
        device=options.device,
    )


def _plan_student(options: DistillOptions) -> ModelRecipe:
    from munjang.engine.modules import NormalizeModule
    from munjang.models.sentence_encoder import SentenceEncoder

    teacher = SentenceEncoder.load(options.teacher.model, compute=options.teacher.compute)
    student = SentenceEncoder.load(options.student.base)
    if teacher.dimension == student.dimension or (teacher.dimension > student.dimension and options.projection == "pca"):
        return options.student
    ends_in_unit = any(isinstance(module, NormalizeModule) for folder in (teacher.folder, student.folder) for module in folder.modules)
    return replace(options.student, dense=teacher.dimension, dense_activation="identity", normalize=ends_in_unit)
