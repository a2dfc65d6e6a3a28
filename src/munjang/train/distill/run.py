"""The whole way of a distillation: plan, train, measure before and after, write the report beside the model.

In: `DistillOptions`. Out: a `DistillResult`, the student's folder, and in it `distillation.json`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from munjang.errors import InputError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train.build import build_encoder
from munjang.train.distill.lessons import prepare_lessons
from munjang.train.distill.measure import Measure, Trio, measure_distillation
from munjang.train.distill.plan import DistillOptions, plan_recipe
from munjang.train.distill.teacher import PromptedEncoder, load_teacher
from munjang.train.durable import write_text
from munjang.train.examples import ExampleSet, read_examples
from munjang.train.finish import TrainResult, run, save_encoder
from munjang.train.loop import TRAINING
from munjang.train.progress import Progress
from munjang.train.recipe import Recipe
from munjang.wording import Language

REPORT = "distillation.json"


@dataclass(frozen=True)
class DistillResult:
    """The training's result and what it changed."""

    training: TrainResult
    measures: tuple[Measure, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        return {**self.training.to_json(), "measures": [asdict(measure) for measure in self.measures]}


@dataclass(frozen=True)
class _DevFiles:
    sts: tuple[ExampleSet, ...]
    parallel: ExampleSet | None


def run_distillation(
    options: DistillOptions, *, resume: bool = False, progress: Progress | None = None, language: Language = "en"
) -> DistillResult:
    """Train the student, save it, and measure what it learnt; files that cannot be measured on are refused before anything else.

    `language` is the report's.
    """
    recipe = plan_recipe(options)
    dev = _read_dev(options)
    result = run(recipe, resume=resume, progress=progress, language=language)
    if not result.is_first:
        return DistillResult(result, ())
    made = DistillResult(result, tuple(_measures(recipe, options, dev)))
    text = json.dumps(made.to_json(), ensure_ascii=False, indent=1) + "\n"
    write_text(result.output / REPORT, text)
    return made


def _read_dev(options: DistillOptions) -> _DevFiles:
    seed = options.schedule.seed
    sts = tuple(read_examples(source, seed=seed) for source in options.dev_sts)
    for found in sts:
        if found.label_kind not in ("score", "binary") or found.columns != 2:
            raise InputError(f"{found.source}: expected pairs of sentences with scores, to measure Spearman on")
    return _DevFiles(sts, None if options.dev_parallel is None else read_examples(options.dev_parallel, seed=seed))


def _measures(recipe: Recipe, options: DistillOptions, dev: _DevFiles) -> list[Measure]:
    learnt = [read_examples(source, seed=recipe.seed) for source in options.data]
    training = Path(recipe.output) / TRAINING
    with tempfile.TemporaryDirectory() as scratch:
        start = build_encoder(recipe, keep=training)
        save_encoder(start, Path(scratch))
        # read from the cache: the training has just filled it
        lessons = prepare_lessons(
            options.teacher, [row.texts[0] for found in learnt for row in found.examples], start, training / "teacher"
        )
        before = PromptedEncoder(SentenceEncoder.load(scratch))
        after = PromptedEncoder(SentenceEncoder.load(recipe.output))
        trio = Trio(load_teacher(options.teacher), before, after, lessons.target)
        return measure_distillation(trio, learnt=learnt[0], parallel=dev.parallel, sts=dev.sts, seed=recipe.seed)
