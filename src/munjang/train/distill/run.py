"""The whole way of a distillation: plan, train, measure before and after, write the report beside the model.

Out: a `DistillResult`, the student's folder, and in it `distillation.json`. The training is a `Recipe` of one stage, so that checkpoints,
resuming, report and card are the trainer's. Where the dimensions differ, a wider teacher is projected to the student's dimension while
training (PCA), which leaves the student's vectors as small and as fast as they were; a narrower one, or projection "dense", gives the
student a linear layer to the teacher's dimension.

Measured are the teacher, the student before and the student after: the mean squared error against the teacher's vector of the source (on
both sides of parallel text), the accuracy of finding translations both ways, Spearman on STS files. Without parallel dev pairs the error
is measured on a sample of what was learnt from, and its name says so. torch is imported when the work begins, so that the command can show
its options without it.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from munjang.engine.modules import NormalizeModule
from munjang.errors import InputError, UsageError
from munjang.evaluate.sts import encode_sides, score_sts
from munjang.evaluate.translation import score_mse, score_translation
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import Option, check_options, default_of
from munjang.train import name_missing_extra
from munjang.train.durable import write_text
from munjang.train.examples import VECTOR_FILES, DataSource, Example, ExampleSet, TeacherRecipe, read_examples
from munjang.train.progress import Progress
from munjang.train.recipe import ModelRecipe, Recipe, TopKeys, make_stage
from munjang.types import DEFAULT_DEVICE, Device, Encoder
from munjang.wording import Language, brief_repr

if TYPE_CHECKING:
    from munjang.train.distill.teacher_targets import Target
    from munjang.train.save_and_report import TrainResult

DISTILL_STAGE: dict[str, object] = {"batch_size": 64, "learning_rate": 1e-4}
STUDENT: dict[str, object] = {"dropout": 0.0, "prompts": False}
"""A distillation's own defaults of a stage and of the model: the student learns from texts without prompts."""

SAMPLE = 1_000
"""Rows of the training data that the error is measured on where there are no dev pairs."""


@brief_repr
@dataclass(frozen=True)
class Measure:
    """One number of three encoders; the teacher's error against itself is none."""

    name: str
    teacher: float | None
    before: float
    after: float


@dataclass(frozen=True)
class Trio:
    """Who is measured, and how the teacher's vectors become the student's targets."""

    teacher: Encoder
    before: Encoder
    after: Encoder
    target: Target


def measure_distillation(
    trio: Trio, *, learnt: ExampleSet, parallel: ExampleSet | None, sts: Sequence[ExampleSet], seed: int
) -> list[Measure]:
    """Return every measure that the files at hand allow."""
    rows = list(parallel.examples) if parallel else _sample_examples(learnt, seed)
    made = _measure_errors(trio, rows, on=parallel.source if parallel else f"{len(rows):,} rows of {learnt.source}")
    if parallel is not None:
        made += _measure_translation(trio, parallel)
    return made + [_measure_spearman(trio, found) for found in sts]


def _measure_errors(trio: Trio, rows: Sequence[Example], *, on: str) -> list[Measure]:
    taught = trio.target.of(trio.teacher.encode([row.texts[0] for row in rows]))
    columns = min(len(row.texts) for row in rows)
    names = ("source", "translation") if columns > 1 else ("text",)
    made = []
    for column, name in enumerate(names):
        texts = [row.texts[column] for row in rows]
        before, after = (score_mse(taught, student.encode(texts)) for student in (trio.before, trio.after))
        made.append(Measure(f"MSE, {name}, {on}", None, before, after))
    return made


def _measure_translation(trio: Trio, parallel: ExampleSet) -> list[Measure]:
    source, target = ([row.texts[column] for row in parallel.examples] for column in (0, 1))
    found = []
    for encoder in (trio.teacher, trio.before, trio.after):
        a, b = encode_sides(encoder, source, target)
        found.append(score_translation(a, b, source=source, target=target, resamples=0))
    there = [one.src2trg_accuracy for one in found]
    back = [one.trg2src_accuracy for one in found]
    return [
        Measure(f"accuracy, source → translation, {parallel.source}", *there),
        Measure(f"accuracy, translation → source, {parallel.source}", *back),
    ]


def _measure_spearman(trio: Trio, sts: ExampleSet) -> Measure:
    left, right = ([row.texts[column] for row in sts.examples] for column in (0, 1))
    gold = [row.label or 0.0 for row in sts.examples]
    found = []
    for encoder in (trio.teacher, trio.before, trio.after):
        a, b = encode_sides(encoder, left, right)
        found.append(score_sts(a, b, gold, resamples=0, worst=0).scores["spearman_cosine"])
    return Measure(f"Spearman, {sts.source}", *found)


def _sample_examples(learnt: ExampleSet, seed: int) -> list[Example]:
    count = min(SAMPLE, len(learnt))
    return [learnt.examples[place] for place in sorted(random.Random(seed).sample(range(len(learnt)), count))]  # noqa: S311


REPORT = "distillation.json"


@brief_repr
@dataclass(frozen=True)
class DistillResult:
    """The training's result and what it changed."""

    training: TrainResult
    measures: tuple[Measure, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        return {**self.training.to_json(), "measures": [asdict(measure) for measure in self.measures]}


@name_missing_extra()
def run_distillation(
    teacher: TeacherRecipe,
    student: ModelRecipe,
    output: str | Path,
    *,
    data: Sequence[DataSource],
    dev_sts: Sequence[DataSource] = (),
    dev_parallel: DataSource | None = None,
    projection: Annotated[
        Literal["pca", "dense"], Option("For a wider teacher: project its vectors, or widen the student with a layer.")
    ] = "pca",
    stage: Mapping[str, object] | None = None,
    seed: int = default_of(TopKeys, "seed"),
    checkpoint_every: int = default_of(TopKeys, "checkpoint_every"),
    device: Device = DEFAULT_DEVICE,
    resume: bool = False,
    progress: Progress | None = None,
    language: Language = "en",
) -> DistillResult:
    """Train the student, save it, and measure what it learnt; files that cannot be measured on are refused before anything else.

    The student learns from texts without prompts: a `ModelRecipe` with `prompts = False` forgets those of its base. `stage` has keys of a
    recipe's stage, such as epochs, steps and batch_size. The first of `dev_sts` decides which weights are kept. `language` is the report's.
    """
    from munjang.train.save_and_report import run

    check_options(run_distillation, locals())
    if not data:
        raise UsageError("nothing to learn from, expected --parallel or --texts")
    if teacher.model.endswith(VECTOR_FILES):
        raise UsageError(
            f"{teacher.model}: is a file of vectors, expected a model, which is measured beside its student\n"
            "  learn from a file with a recipe and munjang train"
        )
    dev = dev_sts[0] if dev_sts else dev_parallel
    own = {"name": "distillation", "objective": "distillation", **DISTILL_STAGE}
    recipe = Recipe(
        output=str(output),
        model=_fit_dimensions(teacher, student, projection),
        stages=(make_stage(stage or {}, data=tuple(data), dev=dev, teacher=teacher, **own),),
        seed=seed,
        checkpoint_every=checkpoint_every,
        device=device,
    )
    sts = [_read_scored(source, seed) for source in dev_sts]
    parallel = None if dev_parallel is None else read_examples(dev_parallel, seed=seed)
    result = run(recipe, resume=resume, progress=progress, language=language)
    if not result.is_first:
        return DistillResult(result, ())
    made = DistillResult(result, tuple(_measure_all(recipe, teacher, sts=sts, parallel=parallel)))
    write_text(result.output / REPORT, json.dumps(made.to_json(), ensure_ascii=False, indent=1) + "\n")
    return made


def _fit_dimensions(teacher: TeacherRecipe, student: ModelRecipe, projection: str) -> ModelRecipe:
    """Return the student, with a layer to the teacher's dimension where it needs one."""
    taught = SentenceEncoder.load(teacher.model, compute=teacher.compute)
    base = SentenceEncoder.load(student.base)
    if taught.dimension == base.dimension or (taught.dimension > base.dimension and projection == "pca"):
        return student
    ends_in_unit = any(isinstance(module, NormalizeModule) for folder in (taught.folder, base.folder) for module in folder.modules)
    return replace(student, dense=taught.dimension, dense_activation="identity", normalize=ends_in_unit)


def _read_scored(source: DataSource, seed: int) -> ExampleSet:
    found = read_examples(source, seed=seed)
    if found.label_kind not in ("score", "binary") or found.columns != 2:
        raise InputError(f"{found.source}: expected pairs of sentences with scores, to measure Spearman on")
    return found


def _measure_all(recipe: Recipe, teacher: TeacherRecipe, *, sts: Sequence[ExampleSet], parallel: ExampleSet | None) -> list[Measure]:
    from munjang.train.build import build_encoder
    from munjang.train.distill.teacher_targets import load_teacher, prepare_targets
    from munjang.train.loop import TRAINING
    from munjang.train.sentence_task import save_encoder

    learnt = [read_examples(source, seed=recipe.seed) for source in recipe.stages[0].data]
    training = Path(recipe.output) / TRAINING
    with tempfile.TemporaryDirectory() as scratch:
        start = build_encoder(recipe, keep=training)
        save_encoder(start, Path(scratch))
        # read from the cache: the training has just filled it
        targets = prepare_targets(teacher, [row.texts[0] for found in learnt for row in found.examples], start, training / "teacher")
        before = SentenceEncoder.load(scratch).with_prompt(warn=False)
        after = SentenceEncoder.load(recipe.output).with_prompt(warn=False)
        trio = Trio(load_teacher(teacher), before, after, targets.target)
        return measure_distillation(trio, learnt=learnt[0], parallel=parallel, sts=sts, seed=recipe.seed)
