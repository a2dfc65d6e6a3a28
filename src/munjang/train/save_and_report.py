"""From a recipe to a folder: train, throw the head away (unless it is kept), save the model, write card and report.

In: a recipe. Out: a `TrainResult`, and in the output folder a sentence-transformers model, README.md and report.html. The model files are
written beside their place and moved in when they are whole; what the training needed stays under `training/`.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from munjang.atomic import sync
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.card import CardFacts, DataFact, ScoreFact, make_card
from munjang.train.dev import find_kept_classifier
from munjang.train.diagnoses import Diagnosis, diagnose, find_guessing_loss
from munjang.train.durable import write_folder
from munjang.train.interrupt import Interrupted
from munjang.train.log import FinalEntry, TrainingLog
from munjang.train.loop import TRAINING, Outcome, Trainer
from munjang.train.progress import Live, Progress, Silent
from munjang.train.recipe import Recipe, read_recipe
from munjang.train.report import Spread, make_report
from munjang.wording import Language, brief_repr


@brief_repr
@dataclass(frozen=True)
class TrainResult:
    """What a training made: the folder, the log, the last dev scores (of the weights that were kept), and the messages on the way."""

    output: Path
    log: TrainingLog
    scores: dict[str, float]
    metric: str | None
    messages: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...] = ()
    """What is wrong with the training, with what to try."""
    is_first: bool = True
    """False in the other processes of a common training: they wrote nothing and have nothing to show."""

    @property
    def warning(self) -> str | None:
        """All that is wrong, in one text; None where nothing is."""
        return " ".join(map(str, self.diagnoses)) or None

    @property
    def tests(self) -> Sequence[FinalEntry]:
        """The score of each stage that has a test file, of the weights that the stage kept."""
        return self.log.finals

    def to_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        steps = len(self.log.steps)
        last = self.log.steps[-1].loss if steps else None
        return {
            "output": str(self.output),
            "steps": steps,
            "loss": last,
            "metric": self.metric,
            "scores": self.scores,
            "tests": [asdict(entry) for entry in self.tests],
            "messages": list(self.messages),
            "warning": self.warning,
            "diagnoses": [found.to_json() for found in self.diagnoses],
        }


def run(recipe: Recipe | Path | str, *, resume: bool = False, progress: Progress | None = None, language: Language = "en") -> TrainResult:
    """Train a recipe and save what came of it; `language` is the report's."""
    made = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    with contextlib.ExitStack() as stack:
        listener = progress or (stack.enter_context(Live()) if sys.stderr.isatty() else Silent())
        trainer = Trainer(made, progress=listener, resume=resume)
        try:
            outcome = trainer.run()
            result = _save(made, outcome, language) if trainer.processes.is_first else None
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise trainer.make_interrupt() or KeyboardInterrupt from None
        for found in result.diagnoses if result else ():
            if (found.stage, found.kind) not in outcome.reported:
                listener.show_message(f"warning: {found}")
        return _wait_for_others(trainer, outcome, result)


def _save(recipe: Recipe, outcome: Outcome, language: Language) -> TrainResult:
    output, task = Path(recipe.output), outcome.task
    spread = task.measure_spread(outcome.stages[-1].data[0].examples, seed=recipe.seed)
    result = _make_result(output, outcome, spread)
    facts = _make_card(recipe, outcome, result)
    title = Message(TrainingWord.TRAINING_OF, name=output.name)
    listed = [(TrainingWord.BASE, facts.base), *task.list_facts(), *((TrainingWord.SETTING, line) for line in facts.settings)]
    named = [(Message(word), value) for word, value in listed]
    report = make_report(
        outcome.log, spread, title=title, messages=outcome.messages, facts=named, diagnoses=result.diagnoses, language=language
    )

    def fill(draft: Path) -> None:
        task.save(draft, outcome.stages[-1])
        (draft / "README.md").write_text(make_card(facts), encoding="utf-8")
        (draft / "report.html").write_text(report, encoding="utf-8")

    staged = output / TRAINING / "model"
    write_folder(staged, fill)
    for path in sorted(staged.iterdir()):
        place = output / path.name
        if place.is_dir():
            shutil.rmtree(place)
        if path.name != task.marker_file:
            path.replace(place)
    sync(output)
    (staged / task.marker_file).replace(output / task.marker_file)
    sync(output)
    staged.rmdir()
    return result


def _make_result(output: Path, outcome: Outcome, spread: Spread) -> TrainResult:
    """Return the result, with the scores of the weights that were kept: the last stage's best evaluation."""
    trained = [entry for entry in outcome.log.evaluations if entry.stage == len(outcome.stages) - 1 and entry.step > 0]
    keeps_best = bool(outcome.stages) and outcome.stages[-1].recipe.keep_best
    chosen = (max(trained, key=lambda entry: entry.score) if keeps_best else trained[-1]) if trained else None
    scores = dict(chosen.scores) if chosen else {}
    return TrainResult(output, outcome.log, scores, chosen.metric if chosen else None, outcome.messages, _diagnose_all(outcome, spread))


def _diagnose_all(outcome: Outcome, spread: Spread) -> tuple[Diagnosis, ...]:
    """Return what is wrong with each stage, and with the model that came of them."""
    stages = outcome.stages
    found = [each for stage in stages for each in diagnose(outcome.log, stage.number, guessing=find_guessing_loss(stage))]
    last = spread.diagnosis(len(stages) - 1)
    is_said = last is not None and any(each.kind == last.kind and each.stage == last.stage for each in found)
    return tuple([*found, last] if last is not None and not is_said else found)


def _make_card(recipe: Recipe, outcome: Outcome, result: TrainResult) -> CardFacts:
    task = outcome.task
    data = [
        DataFact(
            found.examples.source, len(found.examples), stage.objectives[found.objective].name, stage.objectives[found.objective].describe()
        )
        for stage in outcome.stages
        for found in stage.data
    ]
    dev = recipe.stages[-1].dev
    return CardFacts(
        name=Path(recipe.output).name,
        base=Path(recipe.model.base).name if recipe.model.base else Message(TrainingWord.RANDOM_WEIGHTS),
        dimension=task.model.dimension,
        max_length=task.max_length,
        pooling=task.pooling,
        labels=task.labels,
        classes=() if (kept := find_kept_classifier(outcome.stages[-1])) is None else kept.classes,
        data=data,
        dev=Path(dev.path).name if dev else None,
        scores=result.scores,
        metric=result.metric,
        tests=[ScoreFact(entry.test, entry.scores) for entry in result.tests if entry.stage == len(outcome.stages) - 1],
        language=recipe.language,
        license=recipe.license,
        settings=_describe_settings(recipe),
        warnings=tuple(map(str, result.diagnoses)),
        over_tokens=recipe.kind == "multi_vector",
    )


def _describe_settings(recipe: Recipe) -> Sequence[str]:
    lines = [Message(TrainingWord.SEED_AND_PRECISION, seed=recipe.seed, precision=recipe.precision)]
    for number, stage in enumerate(recipe.stages, 1):
        lines.append(
            Message(
                TrainingWord.STAGE_SETTINGS,
                number=number,
                length=Message(TrainingWord.STEPS, count=stage.steps) if stage.steps else Message(TrainingWord.EPOCHS, count=stage.epochs),
                batch=stage.batch_size,
                rate=stage.learning_rate,
                warmup=stage.warmup,
                decay=stage.weight_decay,
            )
        )
    return lines


def _wait_for_others(trainer: Trainer, outcome: Outcome, result: TrainResult | None) -> TrainResult:
    """Let the other processes return when the first has written everything."""
    trainer.processes.wait()
    if result is not None:
        return result
    return TrainResult(Path(trainer.recipe.output), outcome.log, {}, None, outcome.messages, is_first=False)
