"""What `munjang distill` is asked → the recipe that the trainer runs.

In: `DistillOptions`: a teacher, a student, files. Out: a `Recipe` of one stage, so that checkpoints, resuming, report and card are the
trainer's. Where the dimensions differ, a wider teacher is projected to the student's dimension while training (PCA), which leaves the
student's vectors as small and as fast as they were; a narrower one, or projection "dense", gives the student a linear layer to the
teacher's dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from munjang.engine.modules import NormalizeModule
from munjang.errors import UsageError
from munjang.train.distill.teacher import TeacherRecipe
from munjang.train.examples import DataSource
from munjang.train.recipe import ModelRecipe, Recipe, StageRecipe


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a student learns."""

    epochs: int = 1
    steps: int | None = None
    batch_size: int = 64
    accumulate: int = 1
    length_window: int | None = None
    learning_rate: float = 1e-4
    warmup: float = 0.1
    weight_decay: float = 0.0
    evaluate_every: int | None = None
    patience: int | None = None
    checkpoint_every: int = 500
    seed: int = 42


@dataclass(frozen=True)
class StudentOptions:
    """What the student is made of: some layers of the base, its length, its projection, its dropout while it learns.

    It learns from texts without prompts, so it keeps those of its base only where `prompts` says so.
    """

    base: str
    layers: tuple[int, ...] | None = None
    max_length: int | None = None
    projection: Literal["pca", "dense"] = "pca"
    dropout: float = 0.0
    prompts: bool = False


@dataclass(frozen=True)
class DistillOptions:
    """A teacher, a student, what to learn from, and what to measure on. The first file of `dev_sts` decides which weights are kept."""

    teacher: TeacherRecipe
    student: StudentOptions
    output: str
    data: tuple[DataSource, ...]
    dev_sts: tuple[DataSource, ...] = ()
    dev_parallel: DataSource | None = None
    schedule: Schedule = Schedule()


def plan_recipe(options: DistillOptions) -> Recipe:
    """Return the recipe; the folders of teacher and student are looked at for their dimensions."""
    if not options.data:
        raise UsageError("nothing to learn from, expected --parallel or --texts")
    how = options.schedule
    stage = StageRecipe(
        data=options.data,
        dev=options.dev_sts[0] if options.dev_sts else options.dev_parallel,
        name="distillation",
        objective="distillation",
        teacher=options.teacher,
        epochs=how.epochs,
        steps=how.steps,
        batch_size=how.batch_size,
        accumulate=how.accumulate,
        length_window=how.length_window,
        learning_rate=how.learning_rate,
        warmup=how.warmup,
        weight_decay=how.weight_decay,
        evaluate_every=how.evaluate_every,
        patience=how.patience,
    )
    model = _model(options)
    return Recipe(output=options.output, model=model, stages=(stage,), seed=how.seed, checkpoint_every=how.checkpoint_every)


def _model(options: DistillOptions) -> ModelRecipe:
    from munjang.models.sentence_encoder import SentenceEncoder

    asked = options.student
    plain = ModelRecipe(asked.base, max_length=asked.max_length, layers=asked.layers, dropout=asked.dropout, prompts=asked.prompts)
    teacher = SentenceEncoder.load(options.teacher.model, compute=options.teacher.compute)
    student = SentenceEncoder.load(asked.base)
    if teacher.dimension == student.dimension or (teacher.dimension > student.dimension and asked.projection == "pca"):
        return plain
    ends_in_unit = any(isinstance(module, NormalizeModule) for folder in (teacher.folder, student.folder) for module in folder.modules)
    return replace(plain, dense=teacher.dimension, dense_activation="identity", normalize=ends_in_unit)
